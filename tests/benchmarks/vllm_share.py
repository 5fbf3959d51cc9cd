"""Our service with a real vLLM, against the same prompts directly to that vLLM."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from agentworld.client.simulator import SimulatorClient
from agentworld.engine.base import CompletionRequest
from agentworld.engine.openai import OpenAIEngine
from agentworld.errors import EngineError
from agentworld.records.episode import EpisodeOpening
from benchmarks.conversation import TURNS, action, answered, messages, start
from benchmarks.counting_model import ANSWER
from benchmarks.figures import Spread, ratios
from benchmarks.prefix import CachedRequest, hit_bound
from benchmarks.servers import OPENING
from benchmarks.vllm_pair import SAMPLING, Pair, start_pair

EPISODES = 4
"""Concurrently, on both sides."""

ROUNDS = 24

Step = Callable[[int], Awaitable[str]]
"""Takes a turn of one episode; returns the observation."""


class VllmShare(NamedTuple):
    """The service's cost relative to a working engine."""

    ratio: Spread
    """Steps per second: service over engine, round by round."""
    engine_ms: float
    """A step of the engine alone, one episode at a time."""
    hit_of_bound: float
    """Prefix-cache hits of the service's prompts over the maximum for these prompts."""


def measure_share(folder: Path, rounds: int = ROUNDS) -> VllmShare:
    """Runs rounds with the engine and with the service, alternating which is first."""
    with start_pair(folder) as pair:
        return asyncio.run(_take_turns(pair, rounds))


async def _take_turns(pair: Pair, rounds: int) -> VllmShare:
    # The service's exact requests, which include log-probabilities.
    engine = OpenAIEngine(pair.engine.url, pair.engine.model, kind="vllm", logprobs=True)
    client = SimulatorClient(pair.service)
    await client.open_run(OPENING)
    numbers = count()  # no prompt repeats, because the engine may have cached it
    await _rate([_ask_engine(engine, next(numbers))])  # the first responses take longer
    rate_alone = await _rate([_ask_engine(engine, next(numbers))])
    engine_rates, service_rates, hits = [], [], 0.0

    async def ask_engine() -> None:
        engine_rates.append(
            await _rate([_ask_engine(engine, n) for n in islice(numbers, EPISODES)])
        )

    async def ask_service() -> None:
        nonlocal hits
        before = pair.counts().hits
        requests = [await _ask_service(client, number) for number in islice(numbers, EPISODES)]
        service_rates.append(await _rate(requests))
        hits += pair.counts().hits - before

    for number in range(rounds):
        # A B B A: a machine that becomes slower does not look like a slower side.
        sides = (ask_engine, ask_service) if number % 2 == 0 else (ask_service, ask_engine)
        for side in sides:
            await side()
    await client.close()
    await engine.close()
    return VllmShare(
        ratios(service_rates, engine_rates), 1e3 / rate_alone, hits / (rounds * _bound(pair))
    )


def _bound(pair: Pair) -> int:
    """The bound of a round after another one, which leaves the common prefix in the cache."""
    size = pair.counts().block_tokens
    first_round, second_round = (
        _asked(pair, range(EPISODES)),
        _asked(pair, range(EPISODES, 2 * EPISODES)),
    )
    return hit_bound([*first_round, *second_round], size) - hit_bound(first_round, size)


def _ask_engine(engine: OpenAIEngine, number: int) -> Step:
    async def step(turn: int) -> str:
        return (await engine.complete(CompletionRequest(messages(number, turn), SAMPLING))).text

    return step


async def _ask_service(client: SimulatorClient, number: int) -> Step:
    opening = EpisodeOpening(run=client.run.id, initial_state=start(number))
    episode = (await client.begin(opening)).episode

    async def step(turn: int) -> str:
        return (await client.step(episode, action(turn))).observation

    return step


async def _rate(steps: Sequence[Step]) -> float:
    """Steps per second of concurrent episodes."""
    start_time = time.perf_counter()
    await asyncio.gather(*map(_play, steps))
    return len(steps) * TURNS / (time.perf_counter() - start_time)


async def _play(step: Step) -> None:
    for turn in range(TURNS):
        observation = await step(turn)
        if observation != ANSWER:
            raise EngineError(
                f"the counting model said {observation!r}; its prompts are not as planned"
            )


def _asked(pair: Pair, episodes: range) -> list[CachedRequest]:
    """The prompts of these episodes, turn by turn, as the engine's tokens."""
    return [
        CachedRequest(
            pair.tokens(messages(number, turn), asks=True),
            # The token that ended the response was generated but never read.
            pair.tokens(answered(number, turn), asks=False)[:-1],
        )
        for turn in range(TURNS)
        for number in episodes
    ]
