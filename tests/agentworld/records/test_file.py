"""Only regular files are opened, and nothing blocks a reader."""

import os

import pytest

from agentworld.errors import InputError
from agentworld.records.base import digest_file
from agentworld.records.file import (
    NotRegular,
    check_regular,
    open_regular,
    read_lines,
    read_regular,
)
from make.special import SPECIAL, exchange
from waiting import outcome


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize(
    "read", [open_regular, read_regular, lambda path: next(read_lines(path)), check_regular]
)
def test_a_special_file_is_reported_and_not_opened(tmp_path, kind, read):
    exchange(path := tmp_path / "file", kind)
    error = outcome(lambda: read(path))
    assert isinstance(error, NotRegular)
    assert error.strerror == f"it is {kind} and not a regular file"


def test_digesting_a_pipe_reports_its_path(tmp_path):
    exchange(tmp_path / "file")
    error = outcome(lambda: digest_file(tmp_path / "file"))
    assert isinstance(error, InputError)
    assert str(error) == (
        f"cannot read {tmp_path / 'file'}: it is a pipe and not a regular file; check the path"
    )


def test_a_file_larger_than_the_limit_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
    with pytest.raises(NotRegular, match="has more than 4 bytes"):
        read_regular(path, 4)


def test_a_huge_sparse_file_is_refused_at_the_limit(tmp_path):
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 1 << 40)
    for read in (read_regular, lambda *arguments: list(read_lines(*arguments))):
        with pytest.raises(NotRegular, match="has more than 1000 bytes"):
            read(path, 1000)


def test_lines_keep_their_line_ends_and_have_a_maximum_length(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\nend")
    assert list(read_lines(path, 4)) == [b"one\n", b"two\n", b"end"]
    with pytest.raises(NotRegular, match="has more than 3 bytes"):
        list(read_lines(path, 3))


def test_a_link_to_a_file_is_followed(tmp_path):
    (tmp_path / "file").write_bytes(b"words")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link") == b"words"


def test_a_missing_file_is_not_reported_as_a_special_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "file")
    assert outcome(lambda: check_regular(tmp_path / "file")) is None


def test_a_file_deleted_during_the_check_is_treated_as_missing(tmp_path):
    class DeletedPath(type(tmp_path)):
        def exists(self):
            return True

    check_regular(DeletedPath(tmp_path / "journal"), DeletedPath(tmp_path / "no folder/journal"))
    with pytest.raises(NotRegular):
        check_regular(tmp_path / "journal", tmp_path)
