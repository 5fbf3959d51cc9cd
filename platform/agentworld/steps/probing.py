"""One question to a simulator: whether it answers, and with its digest."""

from contextlib import suppress

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import SimulatorError
from agentworld.records.base import Digest
from agentworld.records.episode import EpisodeOpening
from agentworld.records.run import RunOpening

_NO_OBSERVATION = ("cut-off", "unparsable")


async def probe(client: SimulatorClient, weights: Digest) -> None:
    """One step of a run of its own; the client refuses an answer that carries another digest."""
    opening = RunOpening(
        agent="probe", starting_weights=weights, purpose="evaluation", simulator=client.simulator
    )
    try:
        run = await client.open_run(opening)
        try:
            episode = (await client.begin(EpisodeOpening(run=run.id))).episode
            await _ask(client, episode)
        finally:
            with suppress(SimulatorError):  # an open run would keep a Simulator from being deleted
                await client.close_run(weights)
    finally:
        await client.close()


async def _ask(client: SimulatorClient, episode: str) -> None:
    try:
        await client.step(episode, "pwd")
    except SimulatorError as error:
        # It answered with its digest; that a poor model said no observation is the model's.
        if error.kind not in _NO_OBSERVATION:
            raise
    finally:
        with suppress(SimulatorError):
            await client.end(episode)
