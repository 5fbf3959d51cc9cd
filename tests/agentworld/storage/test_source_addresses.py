import io
from collections.abc import Iterator

import pytest

from agentworld.data.importers.rows import rows_of
from agentworld.kinds import Kinds
from agentworld.records.base import digest_bytes, digest_json
from agentworld.storage import source
from agentworld.storage.source import SourceFile, digest_of, files_of

LONG = b'{"a": "' + b"x" * 200_000 + b'"}\n'


def read_lines(address: str) -> Iterator[bytes]:
    yield LONG
    yield f'"{address}"\n'.encode()
    yield b"2\n"


@pytest.fixture(autouse=True)
def _numbers(monkeypatch):
    """A source that is no file, of this module."""
    modules = {"numbers": __name__}
    kinds = Kinds(group="none", what="source", attribute="read_lines", modules=modules)
    monkeypatch.setattr(kinds, "find", lambda _: read_lines)
    monkeypatch.setattr(source, "_LINES", kinds)


def test_an_address_of_what_is_no_file_is_read_as_json_lines():
    address = "numbers:a?filter=b.gz"
    (file,) = files_of(address)
    assert file == SourceFile(address, address)
    first, second, third = rows_of(file)
    assert len(first.value["a"]) == 200_000
    assert (second.value, third.value, third.place) == ("a?filter=b.gz", 2, "line 3")
    content = LONG + b'"a?filter=b.gz"\n2\n'
    assert digest_of(address) == digest_json({address: digest_bytes(content)})


def test_its_lines_are_read_in_pieces_of_any_size():
    with files_of("numbers:")[0].open() as stream:
        assert isinstance(stream, io.BufferedIOBase)
        pieces = iter(lambda: stream.read1(7), b"")
        assert b"".join(pieces) == LONG + b'""\n2\n'


def test_a_path_with_a_colon_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("other:1.json", "numbers:1.json"):
        (tmp_path / name).write_text("[]")
    assert files_of("other:1.json")[0].address.startswith("file://")
    assert files_of("./numbers:1.json")[0].address.startswith("file://")
    assert files_of(f"file://{tmp_path}/numbers:1.json")[0].name == "numbers:1.json"
