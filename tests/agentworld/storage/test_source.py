"""The files of a source, and the digest of their content."""

import os
import random
import threading
from collections import Counter
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pytest

from agentworld.errors import InputError
from agentworld.records.base import digest_bytes
from agentworld.storage.source import ReadProgress, digest_of, files_of
from agentworld.storage.streams import Meter


def test_files_of_a_folder_are_sorted_and_exclude_hidden_files_and_documentation(tmp_path):
    (tmp_path / "b").mkdir()
    ignored = (".hidden.json", "LICENSE", "README.md", "b/.git")
    for name in ("b/x:y@z.jsonl", "a.json.gz", *ignored):
        (tmp_path / name).write_text("{}")
    assert [file.name for file in files_of(str(tmp_path))] == ["a.json.gz", "b/x:y@z.jsonl"]
    assert [file.suffix for file in files_of(str(tmp_path))] == [".json", ".jsonl"]


def test_an_explicitly_named_file_is_read_regardless_of_its_name(tmp_path):
    (tmp_path / "README.md").write_text("{}")
    assert [file.name for file in files_of(str(tmp_path / "README.md"))] == ["README.md"]


@pytest.mark.parametrize("name", ["", "none", "none.json"])
def test_a_source_without_recordings_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="has no recordings; name a file"):
        files_of(str(tmp_path / name))


def test_an_address_with_an_unknown_scheme_is_refused():
    with pytest.raises(InputError, match="cannot read nowhere://logs: .*check the address"):
        files_of("nowhere://logs")


def test_an_address_without_required_options_of_its_driver_is_refused():
    with pytest.raises(InputError, match="cannot read github://logs: .*'org'.*check the address"):
        files_of("github://logs")


def test_an_address_is_read_like_a_local_folder(tmp_path):
    (tmp_path / "a.jsonl").write_text("1\n")
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe("/logs/a.jsonl", b"1\n")
    (file,) = files_of("memory://logs")
    with file.open() as stream:
        assert (file.name, stream.read()) == ("a.jsonl", b"1\n")
    assert digest_of("memory://logs") == digest_of(str(tmp_path))


@pytest.fixture
def downloads():
    """The number of downloads of each address from `web`."""
    return Counter()


@pytest.fixture
def web(tmp_path, downloads):
    """A server of a folder's files, a separate file for each token; returns its host and port."""

    class TokenHandler(SimpleHTTPRequestHandler):
        def do_GET(self):
            downloads[self.path] += 1
            super().do_GET()

        def translate_path(self, path):
            return super().translate_path(path.replace("?token=", "-"))

    handler = partial(TokenHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_password_or_signature_in_an_address_does_not_change_the_digest(tmp_path, web):
    (tmp_path / "a.jsonl").write_text("1\n")
    for address in (f"http://{web}/a.jsonl?signature=a/b", f"http://user:word@{web}/a.jsonl"):
        (file,) = files_of(address)
        with file.open() as stream:
            assert (file.name, file.suffix, stream.read()) == ("a.jsonl", ".jsonl", b"1\n")
        assert digest_of(address) == digest_of(str(tmp_path / "a.jsonl"))


def test_web_files_that_differ_in_their_query_are_separate_files(tmp_path, web):
    links = ["a.jsonl?v=1&amp;sig=s1gned", "a.jsonl?v=2", "README.md?v=1"]
    page = "".join(f'<a href="http://{web}/{link}">{link}</a>' for link in links)
    (tmp_path / "index.html").write_text(page.replace("&amp;", "&"))
    (tmp_path / "a.jsonl").write_text("1\n")
    files = files_of(f"http://{web}/")
    assert [file.name for file in files] == ["a.jsonl?v=1&sig=***", "a.jsonl?v=2"]
    assert [file.suffix for file in files] == [".jsonl", ".jsonl"]
    for file in files:
        with file.open() as stream:
            assert stream.read() == b"1\n"


@pytest.mark.compute
def test_web_files_that_differ_only_in_a_secret_get_different_names(tmp_path, web):
    def digest_with(**contents):
        for token, content in contents.items():
            (tmp_path / f"a.jsonl-{token}").write_text(content)
        links = (f"http://{web}/a.jsonl?token={token}" for token in contents)
        (tmp_path / "index.html").write_text("".join(f'<a href="{link}">a</a>' for link in links))
        return digest_of(f"http://{web}/")

    digest = digest_with(s1="1\n", s2="2\n", s3="2\n")
    files = files_of(f"http://{web}/")
    one, two = (digest_bytes(content).removeprefix("sha256:")[:12] for content in (b"1\n", b"2\n"))
    names = [f"a.jsonl?token=***&content={prefix}" for prefix in (one, two, f"{two}-2")]
    assert [file.name for file in files] == sorted(names)
    assert {file.suffix for file in files} == {".jsonl"}
    assert digest_with(s7="2\n", s8="1\n", s9="2\n") == digest
    assert digest_with(s7="2\n", s8="2\n", s9="2\n") != digest
    assert digest_with(s7="1\n", s8="2\n") != digest


def test_web_files_that_differ_only_in_a_secret_get_no_extra_downloads(tmp_path, web, downloads):
    paths = ["/a.jsonl?token=s1", "/a.jsonl?token=s2", "/b.jsonl"]
    for path in paths:
        (tmp_path / path[1:].replace("?token=", "-")).write_text("1\n")
    links = "".join(f'<a href="http://{web}{path}">a</a>' for path in paths)
    (tmp_path / "index.html").write_text(links)
    digest_of(f"http://{web}/")
    assert downloads[paths[0]] == downloads[paths[1]] == downloads[paths[2]] > 0


def test_an_error_does_not_contain_the_secrets_of_an_address(web):
    with pytest.raises(InputError) as error:
        files_of(f"http://user:word5@{web}/none.jsonl?token=t0ken")
    assert not any(secret in str(error.value) for secret in ("word5", "t0ken"))
    assert "***@" in str(error.value)


def test_the_digest_covers_the_content_and_the_names_of_files(tmp_path):
    (tmp_path / "a.jsonl").write_text("1\n")
    before = digest_of(str(tmp_path))
    assert digest_of(str(tmp_path)) == before
    (tmp_path / "a.jsonl").write_text("2\n")
    assert digest_of(str(tmp_path)) != before
    (tmp_path / "a.jsonl").write_text("1\n")
    (tmp_path / "a.jsonl").rename(tmp_path / "b.jsonl")
    assert digest_of(str(tmp_path)) != before


def test_a_pipe_is_refused_without_blocking(tmp_path):
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match=r"has no recordings|cannot read a\.jsonl"):
        digest_of(str(tmp_path))


def ticks_of(source):
    """The reported progress while the lines of all files are read."""
    ticks = []
    files = files_of(str(source))
    progress = ReadProgress(files, lambda done, total: ticks.append((done, total)))
    for number in range(len(files)):
        with progress.with_meter(number).open() as stream:
            stream.read(10)
        with progress.with_meter(number).open() as stream:
            for _line in stream:
                progress.show(number)
        progress.show(number + 1)
    return ticks


@pytest.mark.compute
@pytest.mark.parametrize(("suffix", "steps"), [("", 3), (".gz", 3), (".zst", 3), (".bz2", 1)])
def test_progress_counts_the_bytes_of_the_files_as_stored(tmp_path, suffix, steps):
    rng = random.Random(0)
    for name in "ab":
        text = "".join(f"{rng.random()}\n" for _ in range(50_000)).encode()
        write_compressed(tmp_path / f"{name}.jsonl{suffix}", text)
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    ticks = ticks_of(tmp_path)
    assert {size for _, size in ticks} == {total}
    done = [num for num, _ in ticks]
    assert done == sorted(done)
    assert done[-1] == total
    assert len({num for num in done if num <= total / 2}) >= steps


def write_compressed(path, data):
    compression = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}.get(path.suffix)
    if compression is None:
        path.write_bytes(data)
        return
    import pyarrow

    with pyarrow.CompressedOutputStream(str(path), compression) as file:
        file.write(data)


def test_progress_counts_files_if_no_size_is_known(tmp_path):
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.jsonl").touch()
    assert ticks_of(tmp_path) == [(1, 2), (2, 2)]


def test_a_metered_file_can_be_read_from_any_position(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"0123456789")
    (file,) = files_of(str(tmp_path))
    meter = Meter()
    with file._replace(meter=meter).open() as stream:
        stream.seek(-3, os.SEEK_END)
        assert (stream.tell(), stream.read()) == (7, b"789")
    assert meter.num_bytes == 3
