"""Serves the admission webhook with kopf's server, and limits the time of a decision.

Every replica serves it. New connections get a renewed certificate without a restart of the server:
a server that stops waits up to a minute for its open connections, and listens to no other.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import kopf
from aiohttp import web

from agentworld.errors import InputError
from agentworld_operator.periodic import every
from agentworld_operator.policy.admission import AdmissionRequest, Denial, answer, read_review
from agentworld_operator.settings import WebhookSettings

_log = logging.getLogger(__name__)

_PAUSE_SECONDS = 1.0
"""Seconds between two attempts to listen."""

Decide = Callable[[AdmissionRequest], Awaitable[Denial | None]]


@asynccontextmanager
async def serve(
    decide: Decide, settings: WebhookSettings, *, decide_seconds: float = 7.0
) -> AsyncIterator[None]:
    """Answers requests while the block runs. If it cannot listen, it logs why and tries again.

    A decision takes at most `decide_seconds`, which is less than the API server waits.
    """

    async def review(request: Any, **_: Any) -> Any:
        try:
            admission_request = read_review(request)
        except InputError as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        denial = await _decide(decide, admission_request, decide_seconds)
        return answer(admission_request.uid, denial)

    async def listen() -> None:
        context = _new_context()
        try:
            async with _server(settings, context) as server:
                async for _ in server(review):
                    _log.info("the webhook listens on %s:%s", settings.host, settings.port)
                    await _renew(context, settings)
        except OSError as error:  # includes ssl.SSLError
            raise InputError(
                f"the webhook cannot listen on {settings.host}:{settings.port} with the certificate"
                f" in {settings.folder}: {error}"
            ) from error

    listening = asyncio.create_task(every(_PAUSE_SECONDS, listen))
    try:
        yield
    finally:
        listening.cancel()
        await asyncio.wait([listening], timeout=decide_seconds)
        listening.cancel()  # the server waits up to a minute for a client that sends nothing


def _new_context() -> ssl.SSLContext:
    return ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)


def _server(settings: WebhookSettings, context: ssl.SSLContext) -> kopf.WebhookServer:
    certificate, key = _files(settings)
    return kopf.WebhookServer(
        addr=settings.host,
        port=settings.port,
        context=context,
        certfile=certificate,
        pkeyfile=key,
        verify_mode=ssl.CERT_REQUIRED if settings.client_ca else None,
        verify_cafile=settings.client_ca,
    )


def _files(settings: WebhookSettings) -> tuple[Path, Path]:
    """The certificate and its key."""
    return settings.folder / "tls.crt", settings.folder / "tls.key"


async def _renew(context: ssl.SSLContext, settings: WebhookSettings) -> None:
    """Loads the certificate again at intervals; new connections get what was loaded last.

    A certificate that cannot be loaded is logged, and the previous one is served.
    """

    async def load() -> None:
        files = _files(settings)
        try:
            _new_context().load_cert_chain(*files)  # a failure leaves a context without a key
            context.load_cert_chain(*files)
        except OSError as error:
            raise InputError(
                f"the webhook keeps its certificate; the one in {settings.folder} cannot be"
                f" loaded: {error}"
            ) from error

    await every(settings.reload_seconds, load)


async def _decide(decide: Decide, request: AdmissionRequest, seconds: float) -> Denial | None:
    subject = f"{request.operation} of {request.kind.kind} {request.object_name}"
    try:
        async with asyncio.timeout(seconds):
            denial = await decide(request)
    except TimeoutError:
        denial = Denial("the cluster or the service did not answer in time; try again", 504)
    except Exception:  # noqa: BLE001 - an edge: a mistake of ours is answered as one, and lets nothing in
        _log.exception("%s: our mistake", subject)
        denial = Denial("the operator made a mistake, which its log shows", 500)
    if denial:
        _log.info(
            "%s by %s is refused: %s", subject, json.dumps(request.user_info.username), denial[0]
        )
    return denial
