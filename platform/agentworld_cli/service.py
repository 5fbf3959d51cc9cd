"""Requests to a running simulator service."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from agentworld.client.simulator import SimulatorClient

Url = Annotated[str, typer.Option(help="The address of a running simulator service.")]

_Answer = TypeVar("_Answer")


def ask(url: str, question: "Callable[[SimulatorClient], Awaitable[_Answer]]") -> _Answer:
    """Sends a request to the service at an address, with AGENTWORLD_CREDENTIAL."""
    from agentworld.client.credential import ClientSettings
    from agentworld.client.simulator import SimulatorClient

    # From the environment, because every user of this machine can read command lines.
    settings = ClientSettings()
    credential = settings.load_credential()

    async def work() -> _Answer:
        client = SimulatorClient(url, credential=credential, start_seconds=settings.start_seconds)
        try:
            return await question(client)
        finally:
            await client.close()

    return asyncio.run(work())
