"""Probes whether equal seeds give equal answers, on the engine and hardware that will serve the
model. Sums of floating-point numbers depend on the batch, so an answer may change with the
concurrent requests. A simulator supports seeds only if the same questions, asked one by one and all
at once, get equal bytes.
"""

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from agentworld.domains.base import domain_of
from agentworld.engine.base import CompletionRequest, Engine
from agentworld.errors import EngineError, InputError
from agentworld.records.base import Record
from agentworld.records.episode import Episode, EpisodeOpening
from agentworld.records.message import Message
from agentworld.records.simulator import SimulatorManifest
from agentworld.rendering.episode import episode_messages

_PROMPTS = 4
_LEAST_QUESTIONS = 8
_ALONE_AT_A_START = 4

_MODELS_OWN_END = ("cut-off", "unparsable")


class SeedProbe(Record):
    """The result of a probe of one engine."""

    concurrency: int
    num_questions: int
    """Questions with several prompts, each under several seeds."""
    difference: str | None = None
    """The first difference as a sentence; null if all answers were equal."""


class _Question(NamedTuple):
    messages: list[Message]
    seed: int


class _Answer(NamedTuple):
    text: str
    ending: str
    """`stop`, or the kind of failure without an answer, which must be equal too."""


class _Round(NamedTuple):
    """The answers to the first questions, and how they were asked."""

    name: str
    answers: list[_Answer]


async def probe_seeds(
    engine: Engine, manifest: SimulatorManifest, concurrency: int, *, briefly: bool = False
) -> SeedProbe:
    """Sends equal questions alone and together; `briefly` sends few alone and skips a third round.

    Raises EngineError if the engine fails.
    """
    questions = _questions(manifest, max(concurrency, _LEAST_QUESTIONS))
    first_questions = questions[:_ALONE_AT_A_START] if briefly else questions

    async def ask(question: _Question) -> _Answer:
        return await _ask(engine, manifest, question)

    rounds = [_Round("alone", [await ask(question) for question in first_questions])]
    rounds.append(_Round("all at once", await asyncio.gather(*map(ask, questions))))
    if not briefly:
        backwards = await asyncio.gather(*map(ask, reversed(questions)))
        rounds.append(_Round("all at once and in another order", backwards[::-1]))
    return SeedProbe(
        concurrency=concurrency,
        num_questions=len(questions),
        difference=_difference(questions, rounds),
    )


def prove_seeds(
    manifest: SimulatorManifest,
    connect: Callable[[], Engine],
    concurrency: int,
    *,
    briefly: bool = False,
) -> None:
    """Raises InputError if the manifest supports seeds and this engine does not."""
    if manifest.sampling.seed_policy == "refuse":
        return

    async def probe() -> SeedProbe:
        engine = connect()
        try:
            return await probe_seeds(engine, manifest, concurrency, briefly=briefly)
        finally:
            await engine.close()

    seed_probe = asyncio.run(probe())
    if seed_probe.difference:
        raise InputError(
            f"equal seeds do not give equal bytes here: {seed_probe.difference}; set"
            " sampling.seed_policy to refuse"
        )


def _questions(manifest: SimulatorManifest, num: int) -> list[_Question]:
    prompts = [_prompt(manifest, number) for number in range(_PROMPTS)]
    return [_Question(prompts[seed % _PROMPTS], seed) for seed in range(num)]


def _prompt(manifest: SimulatorManifest, number: int) -> list[Message]:
    """What the service asks at the first step of an episode."""
    names = list(manifest.domains)
    start, action = domain_of(names[number % len(names)]).question(number)
    opening = EpisodeOpening(
        run="probe", domain=start.domain, initial_state=start.text, tools=start.tools
    )
    history = episode_messages(manifest, Episode.new("probe", manifest.digest, opening))
    return [*history, Message(role="user", content=action)]


async def _ask(engine: Engine, manifest: SimulatorManifest, question: _Question) -> _Answer:
    request = CompletionRequest(question.messages, manifest.sampling, question.seed)
    try:
        completion = await engine.complete(request)
    except EngineError as error:
        if error.kind not in _MODELS_OWN_END:
            raise
        return _Answer("", error.kind)
    return _Answer(completion.text, "stop")


def _difference(questions: Sequence[_Question], rounds: Sequence[_Round]) -> str | None:
    for before, after in pairwise(rounds):
        for question, answer, other_answer in zip(
            questions, before.answers, after.answers, strict=False
        ):
            if answer != other_answer:
                return (
                    f"asked {before.name}, seed {question.seed} gave {_describe(answer)}, and asked"
                    f" {after.name} {_describe(other_answer)}"
                )
    if all(first_answer.ending != "stop" for first_answer in rounds[0].answers):
        return "no question was answered to its end, so that nothing could be compared"
    return None


def _describe(answer: _Answer) -> str:
    return repr(answer.text[:40]) if answer.text else f"no answer ({answer.ending})"
