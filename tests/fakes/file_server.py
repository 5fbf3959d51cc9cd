"""Serves a folder's files in ranges, as object stores do, and counts requests.

Arguments: ADDRESS PORT FOLDER. It prints a line for each range that is requested.
"""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple


class Part(NamedTuple):
    """A range of a file that was requested."""

    file: str
    begin: int
    end: int


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, folder: Path, requested: list[Part], *arguments: Any) -> None:
        self._folder = folder
        self._requested = requested
        super().__init__(*arguments)

    def do_HEAD(self) -> None:
        self._answer(200, self._file.stat().st_size)

    def do_GET(self) -> None:
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"])
        assert match, "a whole file is requested in ranges"
        part = Part(self._file.name, int(match[1]), int(match[2]) + 1)
        self._requested.append(part)
        sys.stdout.write(f"{part.file} {part.begin} {part.end}\n")
        sys.stdout.flush()
        self._answer(206, part.end - part.begin)
        with self._file.open("rb") as file:
            file.seek(part.begin)
            self.wfile.write(file.read(part.end - part.begin))

    @property
    def _file(self) -> Path:
        return self._folder / self.path.removeprefix("/")

    def _answer(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, list[Part]]]:
    """Serves the folder on the loopback: its URL, and the requested ranges."""
    requested: list[Part] = []
    handler = partial(_Handler, folder, requested)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requested
        finally:
            server.shutdown()
            thread.join()


def read_log(path: Path) -> list[Part]:
    """The requested ranges of a server that prints into this file."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return [Part(file, int(begin), int(end)) for file, begin, end in lines]


def files_not_read_once(folder: Path, requested: list[Part]) -> list[str]:
    """The folder's files with a byte that was requested twice, or not at all."""
    return [path.name for path in folder.iterdir() if not _is_read_once(path, requested)]


def _is_read_once(path: Path, requested: list[Part]) -> bool:
    parts = sorted(part for part in requested if part.file == path.name)
    ends = [0, *(part.end for part in parts)]
    return ends == [*(part.begin for part in parts), path.stat().st_size]


if __name__ == "__main__":
    _address, _port, _folder = sys.argv[1:]
    _handler = partial(_Handler, Path(_folder), [])
    ThreadingHTTPServer((_address, int(_port)), _handler).serve_forever()
