"""Sources that are not files, and files on a server."""

import io
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pytest

from agentworld.data.importers.rows import rows_of
from agentworld.errors import InputError
from agentworld.kinds import Kinds
from agentworld.records.base import digest_bytes, digest_json
from agentworld.storage import source
from agentworld.storage.source import UNREADABLE, SourceFile, digest_of, files_of

LONG = b'{"a": "' + b"x" * 200_000 + b'"}\n'


def read_lines(address: str) -> Iterator[bytes]:
    yield LONG
    yield f'"{address}"\n'.encode()
    yield b"2\n"


@pytest.fixture(autouse=True)
def _numbers(monkeypatch):
    """A source that is not a file, from this module."""
    modules = {"numbers": __name__}
    kinds = Kinds(group="none", noun="source", attribute="read_lines", modules=modules)
    monkeypatch.setattr(kinds, "find", lambda _: read_lines)
    monkeypatch.setattr(source, "_LINES", kinds)


def test_a_source_that_is_not_a_file_is_read_as_json_lines():
    address = "numbers:a?filter=b.gz"
    (file,) = files_of(address)
    assert file == SourceFile(address, address)
    first, second, third = rows_of(file)
    assert len(first.value["a"]) == 200_000
    assert (second.value, third.value, third.place) == ("a?filter=b.gz", 2, "line 3")
    content = LONG + b'"a?filter=b.gz"\n2\n'
    assert digest_of(address) == digest_json({address: digest_bytes(content)})


@pytest.mark.compute
def test_the_lines_of_a_source_are_read_in_pieces_of_any_size():
    with files_of("numbers:")[0].open() as stream:
        assert isinstance(stream, io.BufferedIOBase)
        pieces = iter(lambda: stream.read1(7), b"")
        assert b"".join(pieces) == LONG + b'""\n2\n'


class PluginError(Exception):
    """Another package's own exception."""


@pytest.mark.parametrize("kind", [PluginError, TypeError, ValueError, ImportError])
def test_an_error_in_a_line_reader_keeps_its_class_and_traceback(monkeypatch, kind):
    def read_some(_):
        yield b"1\n"
        raise kind("a bug")

    monkeypatch.setattr(source._LINES, "find", lambda _: read_some)
    for read in (digest_of, lambda address: list(rows_of(*files_of(address)))):
        with pytest.raises(kind, match="a bug") as error:
            read("numbers:")
        assert error.traceback[-1].name == "read_some"


def test_a_connection_error_in_a_line_reader_is_reported_without_its_secret(monkeypatch):
    def read_none(_):
        raise ConnectionError("nothing answers at https://me:s3cr3t@cloud")

    monkeypatch.setattr(source._LINES, "find", lambda _: read_none)
    with pytest.raises(InputError) as error:
        digest_of("numbers:")
    reason = "nothing answers at https://me:***@cloud"
    assert str(error.value) == f"cannot read numbers:: {reason}; check the path"


def test_a_path_with_a_colon_is_opened_as_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("other:1.json", "numbers:1.json"):
        (tmp_path / name).write_text("[]")
    assert files_of("other:1.json")[0].address.startswith("file://")
    assert files_of("./numbers:1.json")[0].address.startswith("file://")
    assert files_of(f"file://{tmp_path}/numbers:1.json")[0].name == "numbers:1.json"


SIGNED = "x.jsonl?X-Amz-Signature=s1gned"


@contextmanager
def file_server(answer, *, exists=True):
    """A server that reports whether a file exists; `answer` sends a part of one. Returns its
    URL.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(200 if exists else 403)
            self.send_header("Content-Length", "10")
            self.end_headers()

        def do_GET(self):
            if exists and "Range" not in self.headers:
                self.do_HEAD()
                self.wfile.write(b"1234567890")
            else:
                answer(self)

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def forbid(handler):
    handler.send_error(403)


def break_down(handler):
    handler.send_error(500)


def hang_up(handler):
    handler.close_connection = True


def break_off(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "10")
    handler.end_headers()
    handler.wfile.write(b"12345")


ANSWERS = [
    (forbid, "403"),
    (break_down, "500"),
    (hang_up, "disconnected"),
    (break_off, "payload is not completed"),
]


@pytest.mark.parametrize(("respond", "problem"), ANSWERS)
def test_a_failed_download_is_reported_without_the_signature_of_its_url(respond, problem):
    with file_server(respond) as url, pytest.raises(InputError, match=problem) as error:
        digest_of(f"{url}/{SIGNED}")
    assert str(error.value).startswith("cannot read x.jsonl: ")
    assert "s1gned" not in str(error.value)


@pytest.mark.parametrize(("respond", "problem"), ANSWERS)
def test_an_error_while_reading_a_stream_does_not_contain_the_signature(respond, problem):
    with file_server(respond) as url:
        (file,) = files_of(f"{url}/{SIGNED}")
        with file.open() as stream, pytest.raises(UNREADABLE, match=problem) as error:
            stream.read()
    assert "s1gned" not in str(error.value)


@pytest.mark.parametrize(("respond", "problem"), ANSWERS[:2])
def test_an_address_refused_by_a_server_is_reported_without_its_signature(respond, problem):
    server = file_server(respond, exists=False)
    with server as url, pytest.raises(InputError, match=problem) as error:
        files_of(f"{url}/{SIGNED}")
    assert "cannot read http://127.0.0.1" in str(error.value)
    assert "s1gned" not in str(error.value)


class ClientError(Exception):
    """Like the exceptions of object stores' clients, such as google.auth and azure: not an
    OSError.
    """


class ClientTypeError(ClientError, TypeError):
    """Like an exception of google.auth."""


class FailingFileSystem(fsspec.AbstractFileSystem):
    protocol = "refusing"
    error: Exception

    def __init__(self, when="find", **options):
        super().__init__(**options)
        self.when = when
        self.refuse("open")

    def refuse(self, operation):
        if self.when == operation:
            raise self.error

    @staticmethod
    def _get_kwargs_from_urls(path):
        return {"when": path.removeprefix("refusing://").partition("/")[0]}

    def isfile(self, *_):
        self.refuse("find")
        return True

    def size(self, *_):
        return 9

    def _open(self, *_, **__):
        self.refuse("read")
        return FailingFile(self) if self.when == "stream" else io.BytesIO(b"{}")


class FailingFile(io.BytesIO):
    """A file that fails while it is read."""

    def __init__(self, system):
        super().__init__(b"{}")
        self.system = system

    def read(self, *_):
        self.system.refuse("stream")


@pytest.fixture
def refuse_with(monkeypatch):
    """Sets the error of `FailingFileSystem`."""
    fsspec.register_implementation("refusing", FailingFileSystem, clobber=True)
    return lambda error: monkeypatch.setattr(FailingFileSystem, "error", error, raising=False)


@pytest.mark.parametrize("kind", [ClientError, ClientTypeError, RuntimeError])
@pytest.mark.parametrize("when", ["open", "find", "read", "stream"])
def test_an_error_of_a_storage_client_becomes_one_sentence_without_secrets(refuse_with, when, kind):
    refuse_with(kind("no rights:\n  ask https://me:s3cr3t@cloud for some"))
    with pytest.raises(InputError) as error:
        digest_of(f"refusing://{when}/a.jsonl")
    sentence = r"cannot read \S+: no rights: ask https://me:\*\*\*@cloud for some; check the \w+"
    assert re.fullmatch(sentence, str(error.value))


@pytest.mark.parametrize("kind", [AttributeError, KeyError, TypeError, ZeroDivisionError])
@pytest.mark.parametrize("when", ["find", "read", "stream"])
def test_a_bug_of_a_driver_keeps_its_class_and_its_traceback(refuse_with, when, kind):
    refuse_with(kind("a bug"))
    with pytest.raises(kind, match="a bug") as error:
        digest_of(f"refusing://{when}/a.jsonl")
    assert error.traceback[-1].name == "refuse"


@pytest.fixture
def s3_client():
    """A client without shared state."""
    kind = fsspec.get_filesystem_class("s3")
    kind.clear_instance_cache()
    yield
    kind.clear_instance_cache()


@pytest.mark.compute
@pytest.mark.usefixtures("s3_client")
def test_a_bucket_without_credentials_is_reported_in_one_sentence(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    sentence = "cannot read s3://logs-of-nobody/a.jsonl: Unable to locate credentials; check"
    with pytest.raises(InputError, match=sentence):
        files_of("s3://logs-of-nobody/a.jsonl")
