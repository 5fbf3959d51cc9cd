"""A hub of models on loopback for the requests of huggingface_hub 2.4.

It follows that client's source (`_snapshot_download.py`, `file_download.py`, `hf_api.py`):

    GET  /api/models/NAME/tree/COMMIT    files with git's digest, and LFS's of large ones
    HEAD /NAME/resolve/COMMIT/FILE       commit, size and digest, in headers
    GET  /NAME/resolve/COMMIT/FILE       the bytes; a redirection for large files
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

_LARGE = ".safetensors"


class Hub:
    """Models by name and commit. `requests` has the requests."""

    def __init__(self) -> None:
        self.url = ""
        self.models: dict[tuple[str, str], dict[str, bytes]] = {}
        self.requests: list[str] = []
        self.garbled: set[str] = set()
        """Files whose bytes differ from the hub's metadata."""
        self.broken: set[str] = set()
        """Files that are listed but cannot be downloaded."""

    def add(self, name: str, commit: str, folder: Path, **extra_files: bytes) -> str:
        """Adds the model of a folder; returns its address."""
        paths = [path for path in folder.rglob("*") if path.is_file()]
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
        self.models[name, commit] = files | extra_files
        return f"{name}@{commit}"

    def downloads(self) -> list[str]:
        """The files whose bytes were requested."""
        file_requests = [
            request
            for request in self.requests
            if request.startswith("GET") and "/api/" not in request
        ]
        return sorted({request.rpartition("/")[2] for request in file_requests})


@contextmanager
def running() -> Iterator[Hub]:
    """Serves while the block runs."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            _answer(hub, self, with_body=False)

        def do_GET(self) -> None:
            _answer(hub, self, with_body=True)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield hub
    server.shutdown()
    thread.join()
    server.server_close()


def _answer(hub: Hub, handler: BaseHTTPRequestHandler, *, with_body: bool) -> None:
    path = urlsplit(handler.path).path
    hub.requests.append(f"{handler.command} {path}")
    parts = path.strip("/").split("/")
    if parts[:2] == ["api", "models"]:
        name, commit = "/".join(parts[2:4]), parts[5]
        files = hub.models.get((name, commit))
        if files is None:
            _send(handler, HTTPStatus.NOT_FOUND, {"X-Error-Code": "RepoNotFound"}, b"{}")
        else:
            entries = [_entry(file, content) for file, content in sorted(files.items())]
            _send(handler, HTTPStatus.OK, {}, json.dumps(entries).encode())
        return
    is_elsewhere = parts[0] == "elsewhere"
    name, commit, file = "/".join(parts[-4:-2]), parts[-2], parts[-1]
    if not is_elsewhere:
        name, commit, file = "/".join(parts[:2]), parts[3], "/".join(parts[4:])
    content = hub.models[name, commit][file]
    headers = {"X-Repo-Commit": commit, "ETag": f'"{_git_digest(content)}"'}
    if file.endswith(_LARGE) and not is_elsewhere:
        headers |= {
            "X-Linked-ETag": f'"{hashlib.sha256(content).hexdigest()}"',
            "X-Linked-Size": str(len(content)),
            "Location": f"{hub.url}/elsewhere/{name}/{commit}/{file}",
        }
        _send(handler, HTTPStatus.FOUND, headers, b"")
    elif file in hub.broken and with_body:
        _send(handler, HTTPStatus.INTERNAL_SERVER_ERROR, {}, b"")
    else:
        data = content[::-1] if file in hub.garbled else content
        _send(handler, HTTPStatus.OK, headers, data, with_body=with_body)


def _entry(file: str, content: bytes) -> dict[str, object]:
    entry: dict[str, object] = {
        "type": "file",
        "path": file,
        "size": len(content),
        "oid": _git_digest(content),
    }
    if file.endswith(_LARGE):
        sha256 = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"oid": sha256, "size": len(content), "pointerSize": 134}
    return entry


def _git_digest(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _send(
    handler: BaseHTTPRequestHandler,
    status: HTTPStatus,
    headers: dict[str, str],
    body: bytes,
    *,
    with_body: bool = True,
) -> None:
    handler.send_response(status)
    for name, value in ({"Content-Length": str(len(body))} | headers).items():
        handler.send_header(name, value)
    handler.end_headers()
    if with_body and handler.command != "HEAD":
        handler.wfile.write(body)
