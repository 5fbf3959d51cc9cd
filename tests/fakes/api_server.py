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
    requests: list[Fields]
    """The reviews, as they were sent."""
    absent: dict[str, str]
    """The paths that are answered with 404, and the bodies of these responses."""

    def believes(self, token: str, user: str, audiences: tuple[str, ...] = ("agentworld",)) -> None:
        """Makes this token valid for this user and these audiences."""
        user_info = {"username": user, "uid": "1", "groups": ["system:serviceaccounts"]}
        self.says[token] = {"authenticated": True, "user": user_info, "audiences": list(audiences)}


def token(account: str, signature: str = "c2ln") -> str:
    """A token in the form of a service account's: signed claims, whose signature only a cluster can
    verify.
    """
    namespace, name = account.split("/")
    claims = {"aud": ["agentworld"], "sub": f"system:serviceaccount:{namespace}:{name}"}
    parts = [_part({"alg": "RS256", "kid": "k"}), _part(claims)]
    return ".".join([*parts, signature])


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Serves on the loopback; a kubeconfig in this folder has its address."""
    reviews: list[Fields] = []
    statuses: dict[str, Fields | int | bytes] = {}
    absent: dict[str, str] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert (self.path, review["kind"]) == (PATH, "TokenReview")
            assert review["apiVersion"] == "authentication.k8s.io/v1"
            reviews.append(review)
            status = statuses.get(review["spec"]["token"], {})
            self.send_response(status if isinstance(status, int) else 201)
            self.send_header("content-type", "application/json")
            self.end_headers()
            # Like the real one, it repeats the request, including the token.
            body = status if isinstance(status, bytes) else json.dumps({**review, "status": status})
            self.wfile.write(body if isinstance(body, bytes) else body.encode())

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
        yield Cluster(path, statuses, reviews, absent)
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
