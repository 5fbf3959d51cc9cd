"""An unreliable network between one operator and the API server, which knows the purpose of
requests.

A campaign arms its faults: responses of its own, delays, cuts and losses; it records forwarded
writes.
"""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Literal, NamedTuple

import aiohttp
from aiohttp import web

from agentworld.engine.process import LOOPBACK

Fate = Literal[
    "409", "429", "500", "503", "held", "unsent", "unanswered", "half an answer", "expired"
]
Matter = Literal["write", "lease", "read", "watch"]
"""The purpose of a request."""

FATES: dict[Matter, tuple[Fate, ...]] = {
    "write": ("409", "429", "500", "503", "held", "unsent", "unanswered", "half an answer"),
    "lease": ("409", "429", "503", "held", "unsent", "unanswered"),
    "read": ("429", "500", "503", "held", "unsent", "half an answer"),
    "watch": ("429", "503", "expired"),
}
_REASONS = {"409": "Conflict", "429": "TooManyRequests", "500": "InternalError"}
_HOLD_SECONDS = 1.5
_PASSED_ON = ("Authorization", "Accept", "Content-Type")


class Written(NamedTuple):
    """An operator's write that the proxy received."""

    replica: str
    sent: float
    what: str
    matter: Matter
    holds: bool = False
    """For a lease: it was acquired, and the operator holds it from then on."""


class _Armed(NamedTuple):
    fate: Fate
    matter: Matter
    hit: asyncio.Event


class ApiProxy:
    """One port in front of the API server."""

    def __init__(
        self, name: str, port: int, server: str, certificate: str, count: Callable[[str, str], None]
    ) -> None:
        """`count` records a fault and its target."""
        self.name = name
        self.url = f"http://{LOOPBACK}:{port}"
        self.written: list[Written] = []
        self._port = port
        self._server = server
        self._tls = ssl.create_default_context(cafile=certificate)
        self._count = count
        self._armed: list[_Armed] = []
        self._watches: dict[int, web.Request] = {}

    async def run(self) -> AsyncIterator[None]:
        """Accepts connections until it is closed."""
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{rest:.*}", self._pass)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0)
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, auto_decompress=False
        ) as self._session:
            await web.TCPSite(runner, LOOPBACK, self._port, shutdown_timeout=1.0).start()
            try:
                yield
            finally:
                self.cut_watches()
                await runner.cleanup()

    @property
    def watched(self) -> set[str]:
        """The resources of the open watches."""
        return {watch.path.rpartition("/")[2] for watch in self._watches.values()}

    async def let(self, fate: Fate, matter: Matter, seconds: float) -> bool:
        """Applies a fault to the next request of this purpose; returns whether one arrived in
        time.
        """
        armed_fault = _Armed(fate, matter, asyncio.Event())
        self._armed.append(armed_fault)
        with suppress(TimeoutError):
            await asyncio.wait_for(armed_fault.hit.wait(), seconds)
        if not armed_fault.hit.is_set():
            self._armed.remove(armed_fault)
        return armed_fault.hit.is_set()

    def calm(self) -> None:
        """Ends all faults."""
        self._armed.clear()

    def cut_watches(self) -> int:
        """Closes all open watches; returns how many."""
        watches = list(self._watches.values())
        for request in watches:
            _cut(request)
        return len(watches)

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        matter = _matter(request)
        fate = self._fate(matter)
        record = None
        if matter in ("write", "lease") and request.method != "GET":
            record = Written(
                self.name, time.monotonic(), f"{request.method} {request.path}", matter
            )
            self.written.append(record)
        if fate == "held":
            await asyncio.sleep(_HOLD_SECONDS)
        elif fate == "unsent":
            return _cut(request)
        elif fate == "expired":
            return await _expired()
        elif fate and fate.isdigit():
            return _refused(fate)
        try:
            return await self._forward(request, body, fate, record)
        except (aiohttp.ClientError, OSError):
            return _cut(request)

    def _fate(self, matter: Matter) -> Fate | None:
        for armed_fault in self._armed:
            if armed_fault.matter == matter:
                self._armed.remove(armed_fault)
                armed_fault.hit.set()
                self._count(f"{matter} {armed_fault.fate}", self.name)
                return armed_fault.fate
        return None

    async def _forward(
        self, request: web.Request, body: bytes, fate: Fate | None, record: Written | None
    ) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        url = f"{self._server}{request.path_qs}"
        async with self._session.request(
            request.method, url, data=body or None, headers=headers
        ) as answer:
            if _matter(request) == "watch" and answer.status == 200:
                return await self._stream(request, answer)
            data = await answer.read()
        if record and record.matter == "lease" and answer.status < 300:
            self.written[self.written.index(record)] = record._replace(holds=_holds(data, self))
        if fate == "unanswered":
            return _cut(request)
        response = web.StreamResponse(status=answer.status, headers=_headers(answer, len(data)))
        await response.prepare(request)
        await response.write(data[: len(data) // 2] if fate == "half an answer" else data)
        if fate == "half an answer":
            return _cut(request)
        await response.write_eof()
        return response

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=200, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self._watches[id(request)] = request
        try:
            async for piece in answer.content.iter_any():
                await response.write(piece)
        finally:
            del self._watches[id(request)]
        await response.write_eof()
        return response


def _matter(request: web.Request) -> Matter:
    if "/leases" in request.path:
        return "lease"
    if request.method != "GET":
        return "write"
    return "watch" if request.query.get("watch") else "read"


def _holds(data: bytes, proxy: ApiProxy) -> bool:
    holder: str = json.loads(data)["spec"].get("holderIdentity", "")
    return holder == proxy.name


def _headers(answer: aiohttp.ClientResponse, length: int) -> dict[str, str]:
    headers = {"Content-Type": answer.content_type, "Content-Length": str(length)}
    for name in ("Content-Encoding", "Retry-After"):
        if name in answer.headers:
            headers[name] = answer.headers[name]
    return headers


def _refused(status: str) -> web.Response:
    """A refusal in the form of the API server's."""
    reason = _REASONS.get(status, "ServiceUnavailable")
    status_object = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": f"a fault of the tests: {reason}",
        "reason": reason,
        "code": int(status),
    }
    headers = {"Retry-After": "1"} if status in ("429", "503") else {}
    return web.json_response(status_object, status=int(status), headers=headers)


async def _expired() -> web.StreamResponse:
    """Forgets the resource version of a watch, after a delay for further changes."""
    await asyncio.sleep(_HOLD_SECONDS)
    status_object = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410}
    event = {"type": "ERROR", "object": status_object | {"reason": "Expired", "message": "too old"}}
    return web.Response(text=json.dumps(event) + "\n", content_type="application/json")


def _cut(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
