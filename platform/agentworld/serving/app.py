"""Wires simulators and shared state into a service."""

import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache

from fastapi import FastAPI, Request, Response

from agentworld import __version__
from agentworld.access import Access
from agentworld.errors import AgentworldError
from agentworld.http.auth import Gate
from agentworld.http.errors import add_handlers
from agentworld.http.naming import SimulatorHeader
from agentworld.serving.authorized_service import AppState
from agentworld.serving.documentation import documentation, overview
from agentworld.serving.episodes.quota import Quota
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.housekeeping import repeating
from agentworld.serving.protocols import aliases, native
from agentworld.serving.protocols.base import open_protocol
from agentworld.serving.runs import Runs
from agentworld.serving.simulators.connections import Simulators
from agentworld.serving.telemetry.counts import PROTOCOLS
from agentworld.statements.log_checkpoints import LogCheckpointSigner

_log = logging.getLogger(__name__)


def create_app(
    simulators: Simulators,
    episode_store: EpisodeStore,
    log_signer: LogCheckpointSigner,
    access: Access,
    *,
    idle_seconds: float = 3600.0,
    seal_seconds: float = 10.0,
    answer_seconds: float = 50.0,
    loopback_only: bool = False,
    protocols: Sequence[str] = PROTOCOLS,
) -> FastAPI:
    """The service of these simulators; it closes them and the store's ledger at its end.

    `access` authenticates callers; `loopback_only` also refuses pages of other sites. An episode
    without a step for `idle_seconds` is ended; logs are signed every `seal_seconds` and when the
    service ends. A socket gets within `answer_seconds` the result of its step, or an error that the
    result is unknown.
    """
    runs = Runs(episode_store, simulators, log_signer)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with (
            repeating(runs.seal, seal_seconds),
            repeating(lambda: episode_store.expire(idle_seconds), idle_seconds / 10),
            AsyncExitStack() as stack,
        ):
            for protocol in opened:
                await stack.enter_async_context(protocol.lifespan())
            yield
        try:
            await episode_store.close()
            await runs.seal()
        except AgentworldError as error:
            _log.warning("%s; the last answers are logged and not signed", error)
        finally:
            await simulators.close()
            episode_store.ledger.close()

    app = FastAPI(
        title="agentworld simulator", version=__version__, lifespan=lifespan, openapi_url=None
    )
    quota = Quota(access, episode_store.owners)
    app.state.app_state = AppState(simulators, episode_store, runs, access, quota)
    app.state.answer_seconds = answer_seconds
    opened = [open_protocol(name, app) for name in protocols]
    # unchanged: including a router builds its routes again, which takes a tenth of a second
    app.router.routes += aliases.router.routes
    for protocol in opened:
        app.router.routes += protocol.routes
    app.add_route("/openapi.json", _openapi(app), include_in_schema=False)
    app.add_route("/", overview, include_in_schema=False)
    app.add_route("/docs", documentation(app), include_in_schema=False)
    app.add_middleware(Gate, access=access, loopback_only=loopback_only)
    app.add_middleware(SimulatorHeader, simulator=simulators.single)
    add_handlers(app)
    return app


def _openapi(app: FastAPI) -> Callable[[Request], Response]:
    """Cached: to generate it takes as long as many steps, and every client may request it."""
    document = cache(lambda: json.dumps(app.openapi()).encode())
    return lambda _request: Response(document(), media_type=native.JSON)
