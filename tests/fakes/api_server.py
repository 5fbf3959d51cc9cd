"""A Kubernetes API server that answers TokenReviews, and forbids all other requests by default."""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import yaml

Fields = dict[str, object]

FORBIDDEN = 'User "system:serviceaccount:worlds:service" cannot get resource "simulators"'
"""The response to all other requests."""

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


class Cluster(NamedTuple):
    """The responses that a test sets, and the requests."""

    kubeconfig: Path
    says: dict[str, Fields | int | bytes]
    """The status of each token; a number is an HTTP status, bytes are the whole response."""
    asked: list[Fields]
    """The reviews, as they were sent."""
    absent: dict[str, str]
    """The paths that are answered with 404, and the bodies of these responses."""

    def believes(self, token: str, user: str, audiences: tuple[str, ...] = ("agentworld",)) -> None:
        """From now on this token is this user's, for these audiences."""
        told = {"username": user, "uid": "1", "groups": ["system:serviceaccounts"]}
        self.says[token] = {"authenticated": True, "user": told, "audiences": list(audiences)}


def token(account: str, drawn: str = "c2ln") -> str:
    """A token as a service account has one: signed claims, whose signature only a cluster knows."""
    namespace, name = account.split("/")
    claims = {"aud": ["agentworld"], "sub": f"system:serviceaccount:{namespace}:{name}"}
    parts = [_part({"alg": "RS256", "kid": "k"}), _part(claims)]
    return ".".join([*parts, drawn])


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Answers on the loopback, where a kubeconfig in this folder says that a cluster is."""
    asked: list[Fields] = []
    says: dict[str, Fields | int | bytes] = {}
    absent: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert (self.path, review["kind"]) == (PATH, "TokenReview")
            assert review["apiVersion"] == "authentication.k8s.io/v1"
            asked.append(review)
            said = says.get(review["spec"]["token"], {})
            self.send_response(said if isinstance(said, int) else 201)
            self.send_header("content-type", "application/json")
            self.end_headers()
            # As the real one does, it repeats what it was asked, the token included.
            told = said if isinstance(said, bytes) else json.dumps({**review, "status": said})
            self.wfile.write(told if isinstance(told, bytes) else told.encode())

        def do_GET(self) -> None:
            refusal = json.dumps({"kind": "Status", "message": FORBIDDEN})
            self.send_response(404 if self.path in absent else 403)
            self.end_headers()
            self.wfile.write(absent.get(self.path, refusal).encode())

        def log_message(self, *_arguments: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig(f"http://127.0.0.1:{server.server_port}")))
    try:
        yield Cluster(path, says, asked, absent)
    finally:
        server.shutdown()
        server.server_close()


def kubeconfig(url: str) -> Fields:
    """A kubeconfig for the server's address."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": {"token": "the service's own"}}],
    }


def _part(fields: Fields) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")
