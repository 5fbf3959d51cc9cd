import hashlib
import os
import threading

import fsspec
import pytest

from agentworld.errors import InputError, NotFound, StoreError
from agentworld.records.base import digest_file
from agentworld.storage import fetch
from agentworld.storage.fetch import fetch_files
from fakes import file_server
from waiting import DEADLINE


@pytest.fixture(autouse=True)
def _ranges_of_ten_bytes(monkeypatch):
    monkeypatch.setattr(fetch, "_RANGE_BYTES", 10)


def write_model(folder, *sizes):
    folder.mkdir()
    files = {}
    for number, size in enumerate(sizes):
        content = os.urandom(size)
        (folder / f"part-{number}").write_bytes(content)
        files[f"part-{number}"] = f"sha256:{hashlib.sha256(content).hexdigest()}"
    return f"file://{folder}", files


def test_each_byte_of_the_source_is_requested_once(tmp_path):
    source = tmp_path / "source"
    _, files = write_model(source, 0, 9, 35, 100)
    with file_server.serving(source) as (url, requests):
        fetch_files(url, files, tmp_path / "copy")
    assert {name: digest_file(tmp_path / "copy" / name) for name in files} == files
    assert file_server.files_not_read_once(source, requests) == []
    assert all(part.end - part.begin <= 10 for part in requests)


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 39, 40, 41, 200])
def test_a_file_of_any_number_of_ranges_is_fetched_completely(tmp_path, size):
    url, files = write_model(tmp_path / "source", size)
    fetch_files(url, files, tmp_path / "copy")
    assert digest_file(tmp_path / "copy" / "part-0") == files["part-0"]


def test_many_files_are_fetched_completely(tmp_path):
    url, files = write_model(tmp_path / "source", *range(0, 200, 7))
    fetch_files(url, files, tmp_path / "copy")
    assert {name: digest_file(tmp_path / "copy" / name) for name in files} == files


def test_a_changed_byte_at_any_position_is_detected(tmp_path):
    url, files = write_model(tmp_path / "source", 35, 35)
    for position in (0, 9, 10, 34):
        content = bytearray((tmp_path / "source" / "part-1").read_bytes())
        content[position] ^= 1
        (tmp_path / "source" / "part-1").write_bytes(content)
        with pytest.raises(InputError, match="part-1 at .* does not match the manifest"):
            fetch_files(url, files, tmp_path / "copy")
        content[position] ^= 1
        (tmp_path / "source" / "part-1").write_bytes(content)


def test_a_missing_file_is_reported(tmp_path):
    url, files = write_model(tmp_path / "source", 5, 5)
    (tmp_path / "source" / "part-1").unlink()
    with pytest.raises(NotFound, match="there is no part-1 at"):
        fetch_files(url, files, tmp_path / "copy")


def test_a_file_that_ends_too_early_is_refused(tmp_path, monkeypatch):
    url, files = write_model(tmp_path / "source", 35)
    local = fsspec.filesystem("file")
    monkeypatch.setattr(type(local), "size", lambda *_: 36)
    with pytest.raises(StoreError, match="ends part-0 too early"):
        fetch_files(url, files, tmp_path / "copy")


def test_ranges_of_a_file_are_read_concurrently(tmp_path, monkeypatch):
    """Each read waits for the other reads, so that sequential reads would deadlock."""
    url, files = write_model(tmp_path / "source", 40)
    local = type(fsspec.filesystem("file"))
    cat_file, barrier = local.cat_file, threading.Barrier(4)

    def wait_and_read(*arguments, **options):
        barrier.wait(DEADLINE)
        return cat_file(*arguments, **options)

    monkeypatch.setattr(local, "cat_file", wait_and_read)
    fetch_files(url, files, tmp_path / "copy")
    assert digest_file(tmp_path / "copy" / "part-0") == files["part-0"]


@pytest.mark.parametrize("name", ["../other/part-0", "/etc/part-0", "a/../../part-0"])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    url, files = write_model(tmp_path / "source", 5)
    with pytest.raises(InputError, match="outside its folder"):
        fetch_files(url, {**files, name: files["part-0"]}, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_missing_file_stops_the_other_downloads(tmp_path, monkeypatch):
    """The other file is read for ever, unless the fetch ends."""
    url, files = write_model(tmp_path / "source", 5, 5)
    (tmp_path / "source" / "part-1").unlink()
    system = type(fsspec.filesystem("file"))
    size = system.size
    monkeypatch.setattr(
        system, "size", lambda self, path: 10**12 if path.endswith("part-0") else size(self, path)
    )
    monkeypatch.setattr(system, "cat_file", lambda _self, _path, start, end: bytes(end - start))
    with pytest.raises(NotFound, match="there is no part-1 at"):
        fetch_files(url, files, tmp_path / "copy")


def test_an_unwritable_target_folder_is_reported_instead_of_the_source(tmp_path):
    url, files = write_model(tmp_path / "source", 5)
    (tmp_path / "copy").write_text("a file")
    with pytest.raises(StoreError, match=f"{tmp_path / 'copy'} failed"):
        fetch_files(url, files, tmp_path / "copy")
