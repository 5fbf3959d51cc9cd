"""The webhook's server: TLS, the size and the time of a request, and nothing that decides.

Every replica serves it, whoever leads. Its certificate is read again when its files changed, for
new connections and without a restart.
"""

import asyncio
import json
import logging
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from agentworld.errors import InputError
from agentworld_operator.periodic import every
from agentworld_operator.policy.admission import AdmissionRequest, Denial, answer, read_review

_log = logging.getLogger(__name__)

_MOST_BYTES = 8 * 2**20
"""An API server takes 3 MiB, and sends an object with the one before it."""

Decide = Callable[[AdmissionRequest], Awaitable[Denial | None]]


class RequestTimeouts(NamedTuple):
    """Of one request; together less than an API server waits."""

    read_seconds: float = 2.0
    decide_seconds: float = 7.0


class ServingCertificate:
    """A server's side of TLS, with the certificate that its files hold now."""

    def __init__(self, folder: Path, clients: Path | None = None) -> None:
        """The folder has `tls.crt` and `tls.key`, as a cluster mounts a Secret.

        `clients` is the file of an authority: who asks has to show a certificate of it. Raises
        InputError where it is none.
        """
        self.context = _context()
        self.is_ready = False
        self.knows_clients = clients is not None
        self._paths = folder / "tls.crt", folder / "tls.key"
        self._read: tuple[bytes, bytes] | None = None
        self._problem = ""
        if clients:
            _require_client_certificates(self.context, clients)

    def refresh(self) -> None:
        """Takes up what the files hold; what is half written, or not there, is left alone."""
        try:
            certificate, key = (path.read_bytes() for path in self._paths)
            if (certificate, key) == self._read:
                return
            # The same bytes twice: the files may be exchanged meanwhile, and a pair that does not
            # match would spoil the context that serves.
            with _in_memory(certificate) as chain, _in_memory(key) as private:
                _context().load_cert_chain(chain, private)
                self.context.load_cert_chain(chain, private)
        except (OSError, ssl.SSLError) as error:
            if str(error) != self._problem:
                _log.warning("the webhook's certificate cannot be read: %s", error)
            self._problem = str(error)
            return
        self.is_ready, self._read, self._problem = True, (certificate, key), ""
        _log.info("the webhook has a new certificate")


@contextmanager
def _in_memory(data: bytes) -> Iterator[str]:
    """The path of a file with these bytes that is on no disk."""
    file = os.memfd_create("agentworld")
    try:
        os.write(file, data)
        yield f"/proc/self/fd/{file}"
    finally:
        os.close(file)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _require_client_certificates(context: ssl.SSLContext, clients: Path) -> None:
    # Optional, for who asks whether this is ready has none.
    context.verify_mode = ssl.CERT_OPTIONAL
    try:
        context.load_verify_locations(clients)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{clients} holds no authority of the API server's: {error}") from error


@asynccontextmanager
async def serve(
    decide: Decide,
    certificate: ServingCertificate,
    host: str,
    port: int,
    *,
    every_seconds: float = 1.0,
    timeouts: RequestTimeouts = RequestTimeouts(),  # noqa: B008 - frozen
) -> AsyncIterator[None]:
    """Answers on this port while the block runs; raises InputError where it cannot listen."""
    app = application(decide, certificate, timeouts)
    # Of a body that was refused, the rest is waited for this long.
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=10, lingering_time=1.0)
    await runner.setup()

    async def refresh() -> None:
        # Not in a thread: a handshake beside it would see the new certificate with the old key.
        certificate.refresh()

    following = asyncio.create_task(every(every_seconds, refresh))
    try:
        try:
            await web.TCPSite(runner, host, port, ssl_context=certificate.context).start()
        except OSError as error:
            raise InputError(
                f"the webhook cannot listen on {host}:{port} ({error.strerror}); name another port"
            ) from error
        yield
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await runner.cleanup()


def application(
    decide: Decide, certificate: ServingCertificate, timeouts: RequestTimeouts
) -> web.Application:
    """`POST /admit`, and `GET /ready` for the one that asks whether it may be sent requests."""

    async def admit(request: web.Request) -> web.Response:
        if certificate.knows_clients and not request.get_extra_info("peercert"):
            raise web.HTTPUnauthorized(text="show the API server's certificate")
        try:
            async with asyncio.timeout(timeouts.read_seconds):
                admission_request = read_review(await request.read())
        except TimeoutError as error:
            raise web.HTTPRequestTimeout from error
        except ConnectionError as error:
            raise web.HTTPBadRequest(text="the request broke off") from error
        except InputError as error:
            return web.Response(status=400, text=str(error))
        denial = await _decide(decide, admission_request, timeouts.decide_seconds)
        return web.json_response(answer(admission_request.uid, denial))

    async def ready(_request: web.Request) -> web.Response:
        return web.Response(status=200 if certificate.is_ready else 503)

    app = web.Application(client_max_size=_MOST_BYTES)
    app.router.add_post("/admit", admit)
    app.router.add_get("/ready", ready)
    return app


async def _decide(decide: Decide, request: AdmissionRequest, seconds: float) -> Denial | None:
    subject = f"{request.operation} of {request.kind.kind} {request.object_name}"
    try:
        async with asyncio.timeout(seconds):
            denial = await decide(request)
    except TimeoutError:
        denial = Denial("who had to be asked did not answer in time; try again", 504)
    except Exception:  # noqa: BLE001 - an edge: a mistake of ours is answered as one, and lets nothing in
        _log.exception("%s: our mistake", subject)
        denial = Denial("the operator made a mistake, which its log shows", 500)
    if denial:
        _log.info(
            "%s by %s is refused: %s", subject, json.dumps(request.user_info.username), denial[0]
        )
    return denial
