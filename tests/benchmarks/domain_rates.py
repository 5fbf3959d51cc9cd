"""The speed and memory of live environments, and the speed of verifiers."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from random import Random
from statistics import median
from typing import NamedTuple

import psutil

from agentworld.domains.base import Domain, verdict_of
from agentworld.domains.live import Environment, live_domain, open_environment
from make.changed_observations import other_value

NUM_SIDE_BY_SIDE = 8
_NUM_RESETS = 20
_ROUNDS = 3
_TURNS = 12
_MIB = 1 << 20
_SECONDS = 1.0


class Rates(NamedTuple):
    """The rates of a domain's environments."""

    steps_per_second_1: float
    """Explorers' steps in one environment, without resets."""
    steps_per_second_8: float
    """The same in eight concurrent environments, together."""
    reset_p50_seconds: float
    memory_mib: float
    """Of an environment with an open episode; with its part of shared pages."""


async def measure_rates(name: str) -> Rates:
    """The rates of environments in this process."""
    memory_before = _memory()
    async with AsyncExitStack() as stack:
        contexts = [open_environment(name) for _ in range(NUM_SIDE_BY_SIDE)]
        environments = [await stack.enter_async_context(item) for item in contexts]
        resets = [await _reset(name, environments[0], seed) for seed in range(_NUM_RESETS)]
        single_rates = [
            await _steps_per_second(name, environments[:1], seed) for seed in range(_ROUNDS)
        ]
        parallel_rates = [
            await _steps_per_second(name, environments, seed) for seed in range(_ROUNDS)
        ]
        memory = (_memory() - memory_before) / NUM_SIDE_BY_SIDE
    return Rates(median(single_rates), median(parallel_rates), median(resets), memory)


async def _reset(name: str, environment: Environment, seed: int) -> float:
    task = live_domain(name).task(seed, held_out=False)
    begin = time.perf_counter()
    await environment.reset(task)
    return time.perf_counter() - begin


async def _steps_per_second(name: str, environments: Sequence[Environment], seed: int) -> float:
    live = live_domain(name)
    tasks = [
        live.task(seed * NUM_SIDE_BY_SIDE + number, held_out=False, has_goal=False)
        for number in range(len(environments))
    ]
    starts = [
        await environment.reset(task) for environment, task in zip(environments, tasks, strict=True)
    ]
    explorers = [
        live.explorer(
            Random(task.seed), start, task, held_out=False, pursues_task=False, num_turns=_TURNS
        )
        for start, task in zip(starts, tasks, strict=True)
    ]

    async def act(environment: Environment, number: int) -> int:
        observation, num_steps = None, 0
        while (action := explorers[number].act(observation)) is not None:
            observation = await environment.step(action)
            num_steps += 1
        return num_steps

    begin = time.perf_counter()
    steps = await asyncio.gather(
        *(act(own_environment, n) for n, own_environment in enumerate(environments))
    )
    return sum(steps) / (time.perf_counter() - begin)


def _memory() -> float:
    """MiB of this process and its children, with shared pages divided."""
    root = psutil.Process(os.getpid())
    return sum(_pss(process) for process in [root, *root.children(recursive=True)]) / _MIB


def _pss(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except psutil.Error:  # it has ended
        return 0


def verdicts_per_second(domain: Domain, truths: Sequence[str], size: int) -> float:
    """Verdicts in a second of processor time, over pairs of texts of at least `size` characters.

    The texts are lines of recorded observations; half of the predictions have a wrong value, and
    the others are equal to the truth.
    """
    rng = Random(size)
    pairs = list(_pairs(rng, truths, size))
    return _rate(
        lambda: [verdict_of(domain, predicted, truth) for predicted, truth in pairs]
    ) * len(pairs)


def _pairs(rng: Random, truths: Sequence[str], size: int) -> Iterator[tuple[str, str]]:
    for number in range(8):
        text = rng.choice(truths)
        while len(text) < size:
            text = f"{rng.choice(truths)}\n{text}"
        yield (other_value(rng, text, ()) or text if number % 2 else text), text


def _rate(work: Callable[[], object]) -> float:
    """Runs in a second of processor time."""
    begin, num = time.process_time(), 0
    while (seconds := time.process_time() - begin) < _SECONDS:
        work()
        num += 1
    return num / seconds
