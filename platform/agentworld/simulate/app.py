"""The only wiring: a manifest, an engine and a ledger make a service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentworld import __version__
from agentworld.client.simulator import SIMULATOR_HEADER
from agentworld.engine.base import Engine
from agentworld.ledger import Ledger
from agentworld.records.simulator import SimulatorManifest
from agentworld.simulate.endpoints import router
from agentworld.simulate.failures import add_handlers
from agentworld.simulate.manifest import check_code
from agentworld.simulate.service import SimulatorService


def create_app(manifest: SimulatorManifest, engine: Engine, ledger: Ledger) -> FastAPI:
    """The service of one pinned simulator; raises InputError where this code is not the pinned."""
    check_code(manifest)

    @asynccontextmanager
    async def closing(_app: FastAPI) -> AsyncIterator[None]:
        yield
        await engine.close()
        ledger.close()

    service = SimulatorService(manifest, engine, ledger)
    app = FastAPI(title="agentworld simulator", version=__version__, lifespan=closing)
    app.state.service = service
    app.include_router(router)
    app.add_middleware(_Named, digest=service.digest)
    add_handlers(app)
    return app


class _Named:
    """Writes the simulator's digest on every response, failures included."""

    def __init__(self, app: ASGIApp, digest: str) -> None:
        self._app = app
        self._digest = digest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[SIMULATOR_HEADER] = self._digest
            await send(message)

        await self._app(scope, receive, send_named)
