import zipfile
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentworld.data.importers.rows import MOST_DOCUMENT_BYTES
from agentworld.data.importers.zips import open_zip
from agentworld.errors import InputError
from agentworld.storage.source import files_of
from make import zips

MEMBERS = {"a.json": b"[1]" * 1_000, "b/c.json": b""}


def contents(path):
    with open_zip(files_of(str(path))[0]) as archive:
        return {name: archive.read(name) for name in archive.names}


@pytest.mark.parametrize("write", [zips.write_zip, zips.write_zstd_zip])
def test_members_of_deflate_and_zstd_compression_are_read(tmp_path, write):
    assert contents(write(tmp_path / "a.eval", MEMBERS)) == MEMBERS


def test_a_member_of_several_zstd_frames_is_read_whole(tmp_path, monkeypatch):
    compress = zips.pyarrow.compress

    def compress_in_parts(data, **options):
        return compress(data[:500], **options) + compress(data[500:], **options)

    monkeypatch.setattr(zips.pyarrow, "compress", compress_in_parts)
    assert contents(zips.write_zstd_zip(tmp_path / "a.eval", MEMBERS)) == MEMBERS


def test_the_last_of_two_members_with_one_name_is_used(tmp_path):
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.json", b"2")
    assert contents(path) == {"a.json": b"2"}


@pytest.mark.parametrize("write", [zips.write_zip, zips.write_zstd_zip])
@pytest.mark.parametrize(
    ("offset", "layout", "value", "problem"),
    [
        (8, "<H", 1, "it is encrypted"),
        (10, "<H", 14, "it is compressed by method 14"),
        (16, "<I", 1, "it is damaged"),
        (20, "<I", 3, "it is damaged"),
        (24, "<I", 3, "it is damaged"),
        (24, "<I", 30_000, "it is damaged"),
        (24, "<I", MOST_DOCUMENT_BYTES + 1, "it is longer than 1,073,741,824 bytes"),
    ],
)
def test_a_member_that_cannot_be_read_is_refused(tmp_path, write, offset, layout, value, problem):
    path = write(tmp_path / "a.eval", MEMBERS)
    zips.set_field(path, offset, layout, value)
    with pytest.raises(InputError, match=problem):
        contents(path)


def test_inflation_stops_at_the_declared_size_of_a_member(tmp_path, monkeypatch):
    sizes = []
    inflate = zipfile.ZipExtFile.read

    def read(stream, size=-1):
        sizes.append(size)
        return inflate(stream, size)

    monkeypatch.setattr(zipfile.ZipExtFile, "read", read)
    path = zips.write_zip(tmp_path / "a.eval", {"a.json": bytes(10_000_000)})
    zips.set_field(path, 24, "<I", 10)
    with pytest.raises(InputError, match="it is damaged"):
        contents(path)
    assert sizes == [11]


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"{}"])
def test_a_file_that_is_no_zip_is_refused(tmp_path, data):
    (tmp_path / "a.eval").write_bytes(data)
    with pytest.raises(InputError, match="it is not a whole zip"):
        contents(tmp_path / "a.eval")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.integers(0, 2_000), st.integers(0, 255), min_size=1, max_size=4))
@pytest.mark.parametrize("write", [zips.write_zip, zips.write_zstd_zip])
def test_a_damaged_zip_yields_only_original_content_or_an_error(tmp_path, write, changes):
    path = write(tmp_path / "a.eval", MEMBERS)
    content = bytearray(path.read_bytes())
    for offset, value in changes.items():
        content[offset % len(content)] = value
    path.write_bytes(content)
    with suppress(InputError):
        assert set(contents(path).values()) <= set(MEMBERS.values())
