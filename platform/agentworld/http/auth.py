"""Authentication middleware: refuses a request without a known credential before it is read."""

import base64
import binascii
import json
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from agentworld.access import Access, Caller
from agentworld.errors import AccessError, AgentworldError
from agentworld.http.errors import answer_of, count

_OPEN = frozenset(("/health",))
_OF_A_RUN = frozenset(
    ("ws", "mcp", "reset", "step", "state", "schema", "metadata", "openapi.json", "v1")
)
_MOST_BYTES = 16 * 2**10
"""The longest credential; a service account's token has two thousand characters."""
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))

Headers = Iterable[tuple[bytes, bytes]]


class Gate:
    """Puts the caller into the scope, for every protocol.

    `loopback_only` refuses requests that a web page of another site makes this machine's browser
    send, because without credentials nothing else would stop them.
    """

    def __init__(self, app: ASGIApp, access: Access, *, loopback_only: bool = False) -> None:
        self._app = app
        self._access = access
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        ask = partial(self._caller, scope["headers"])
        try:
            scope["caller"] = await ask()
        except AgentworldError as error:
            count(scope, error)
            await _send_refusal(scope, send, error)
            return
        scope["ask_again"] = ask
        await self._app(_in_run(scope, scope["caller"].run), receive, send)

    async def _caller(self, headers: Headers) -> Caller:
        if self._loopback_only:
            check_loopback(headers)
        return await self._access.caller(credential(headers))


def _in_run(scope: Scope, run: str | None) -> Scope:
    """For a run token, a path at the root is mapped to its run: `/ws` to `/runs/RUN/ws`."""
    _, _, rest = scope["path"].partition("/")
    if run is None or rest.partition("/")[0] not in _OF_A_RUN:
        return scope
    path = f"/runs/{run}{scope['path']}"
    return {**scope, "path": path, "raw_path": path.encode()}


def credential(headers: Headers) -> str | None:
    """The bearer token, or the password in the address; null if there is none.

    `http://run:TOKEN@host` serves clients that cannot send headers. If a request has two
    credentials, none is accepted, because a proxy may have checked the other one.
    """
    credentials = [value for name, value in headers if name == b"authorization"]
    if len(credentials) != 1 or len(credentials[0]) > _MOST_BYTES:
        return None
    scheme, _, rest = credentials[0].decode("latin-1").partition(" ")
    match scheme.lower():
        case "bearer":
            return rest.strip() or None
        case "basic":
            return _password(rest.strip())
    return None


def _password(pair: str) -> str | None:
    try:
        return base64.b64decode(pair, validate=True).decode().partition(":")[2] or None
    except (binascii.Error, ValueError):
        return None


def check_loopback(headers: Headers) -> None:
    """Raises AccessError for a request of another site's page, which its origin or host names."""
    for name, value in headers:
        address = value.decode("latin-1")
        if name == b"host" and _host(f"//{address}") not in _LOOPBACK:
            raise AccessError(
                f"this service answers requests to localhost, not to {address!r:.80}",
                kind="forbidden",
            )
        if name == b"origin" and _host(address) not in _LOOPBACK:
            raise AccessError(
                f"a page of {address!r:.80} may not send requests here; open it from localhost",
                kind="forbidden",
            )


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


async def _send_refusal(scope: Scope, send: Send, error: AgentworldError) -> None:
    status, headers, body = answer_of(error, scope["path"])
    kind = "http"
    if scope["type"] == "websocket":
        kind = "websocket.http"
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close"})
            return
    if status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = 'Bearer realm="agentworld"'
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": f"{kind}.response.start", "status": status, "headers": pairs})
    await send({"type": f"{kind}.response.body", "body": json.dumps(body).encode()})
