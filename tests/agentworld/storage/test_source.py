"""Which files a source has, and the digest of their content."""

import os

import fsspec
import pytest

from agentworld.errors import InputError
from agentworld.storage.source import digest_of, files_of


def test_a_folders_files_come_in_the_order_of_their_names_without_what_lies_beside(tmp_path):
    (tmp_path / "b").mkdir()
    for name in ("b/x.jsonl", "a.json.gz", ".hidden.json", "LICENSE", "README.md", "b/.git"):
        (tmp_path / name).write_text("{}")
    assert [file.name for file in files_of(str(tmp_path))] == ["a.json.gz", "b/x.jsonl"]
    assert [file.suffix for file in files_of(str(tmp_path))] == [".json", ".jsonl"]


def test_a_file_that_is_named_is_read_whatever_its_name(tmp_path):
    (tmp_path / "README.md").write_text("{}")
    assert [file.name for file in files_of(str(tmp_path / "README.md"))] == ["README.md"]


@pytest.mark.parametrize("name", ["", "none", "none.json"])
def test_a_source_without_recordings_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="holds no recordings; name a file"):
        files_of(str(tmp_path / name))


def test_an_address_that_nothing_opens_is_refused():
    with pytest.raises(InputError, match="cannot read nowhere://logs: .*check the address"):
        files_of("nowhere://logs")


def test_an_address_is_read_as_a_folder_is(tmp_path):
    (tmp_path / "a.jsonl").write_text("1\n")
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe("/logs/a.jsonl", b"1\n")
    (file,) = files_of("memory://logs")
    with file.open() as stream:
        assert (file.name, stream.read()) == ("a.jsonl", b"1\n")
    assert digest_of("memory://logs") == digest_of(str(tmp_path))


def test_the_digest_is_of_the_content_and_of_the_names(tmp_path):
    (tmp_path / "a.jsonl").write_text("1\n")
    before = digest_of(str(tmp_path))
    assert digest_of(str(tmp_path)) == before
    (tmp_path / "a.jsonl").write_text("2\n")
    assert digest_of(str(tmp_path)) != before
    (tmp_path / "a.jsonl").write_text("1\n")
    (tmp_path / "a.jsonl").rename(tmp_path / "b.jsonl")
    assert digest_of(str(tmp_path)) != before


def test_a_pipe_blocks_nobody(tmp_path):
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match=r"holds no recordings|cannot read a\.jsonl"):
        digest_of(str(tmp_path))
