"""Probes a simulator with one question: whether it answers, and with its digest."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

from agentworld.client.simulator import SimulatorClient
from agentworld.domains.base import Question, domain_of
from agentworld.errors import SimulatorError
from agentworld.records.base import Digest
from agentworld.records.episode import EpisodeOpening
from agentworld.records.run import RunOpening

_NO_OBSERVATION = ("cut-off", "unparsable")
_CLOSING_SECONDS = 10.0


async def probe(client: SimulatorClient, weights: Digest) -> None:
    """Takes one step in a run of its own; the client refuses an answer with another digest."""
    opening = RunOpening(
        agent="probe", starting_weights=weights, purpose="evaluation", simulator=client.simulator
    )
    try:
        run = await client.open_run(opening)
        try:
            await _ask(client, await _question(client), run.id)
        finally:
            # an open run would block the deletion of a Simulator
            await _attempt(client.close_run(weights))
    finally:
        await client.close()


async def _question(client: SimulatorClient) -> Question:
    """A question of the simulator's first domain."""
    manifest = await client.manifest()
    return domain_of(next(iter(manifest.domains))).question(0)


async def _ask(client: SimulatorClient, question: Question, run: str) -> None:
    start, action = question
    opening = EpisodeOpening(run=run, domain=start.domain, initial_state=start.text)
    episode = (await client.begin(opening)).episode
    try:
        await client.step(episode, action)
    except SimulatorError as error:
        # It answered with its digest; an answer without an observation is the model's failure.
        if error.kind not in _NO_OBSERVATION:
            raise
    finally:
        await _attempt(client.end(episode))


async def _attempt(ending: Awaitable[object]) -> None:
    """Ends a run or an episode, and ignores failures.

    It has its own timeout, because the caller's may have cancelled the probe already.
    """
    with suppress(SimulatorError, TimeoutError):
        async with asyncio.timeout(_CLOSING_SECONDS):
            await ending
