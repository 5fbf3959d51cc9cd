"""Requests observations from the engine, with the retries and the confidence of the manifest."""

import asyncio
import time
from collections.abc import Callable, Sequence

from agentworld.engine.base import Completion, CompletionRequest, Engine
from agentworld.errors import EngineError
from agentworld.records.episode import Confidence
from agentworld.records.message import Message
from agentworld.records.simulator import ConfidencePolicy, SimulatorManifest
from agentworld.records.usage import Usage
from agentworld.serving.episodes import session
from agentworld.serving.episodes.session import StepObservation

_UNKNOWN = Confidence()
_NO_USAGE = Usage()


class MeteredEngine:
    """An engine that counts the usage of all its requests.

    A failed request used the engine's time; its number of tokens is unknown.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.perf_counter) -> None:
        self._engine = engine
        self._clock = clock
        self._num_requests = 0
        self.usage = _NO_USAGE
        self.queued_seconds = 0.0
        """Seconds in the engine's queue."""

    async def complete(self, request: CompletionRequest) -> Completion:
        """The engine's answer, counted."""
        start, counts, queued_seconds = self._clock(), (0, 0, 0), 0.0
        try:
            completion = await self._engine.complete(request)
            queued_seconds = completion.queued_seconds
            read, cached = completion.num_prompt_tokens, completion.num_cached_tokens
            counts = read, cached, completion.num_tokens
        except EngineError as error:
            queued_seconds = error.queued_seconds
            raise
        finally:
            usage = Usage(*counts, self._clock() - start - queued_seconds)
            # the common case: one request
            self.usage = self.usage.plus(usage) if self._num_requests else usage
            self._num_requests += 1
            self.queued_seconds += queued_seconds
        return completion


class Observer:
    """Requests observations from one engine by one manifest.

    It has no state, so serving changes nothing.
    """

    def __init__(self, manifest: SimulatorManifest, engine: Engine) -> None:
        self._manifest = manifest
        self._engine = engine

    async def observe(
        self, messages: Sequence[Message], seed: int | None, episode: str
    ) -> StepObservation:
        """An observation, or an EngineError with the reason."""
        retry, metered_engine = self._manifest.retry, MeteredEngine(self._engine)
        for _ in range(retry.attempts - 1):
            try:
                return await self._ask(metered_engine, messages, seed, episode)
            except EngineError as error:
                if not error.retryable or error.kind not in retry.retry_on:
                    raise
        return await self._ask(metered_engine, messages, seed, episode)

    async def _ask(
        self, engine: MeteredEngine, messages: Sequence[Message], seed: int | None, episode: str
    ) -> StepObservation:
        policy = self._manifest.confidence
        if policy.num_samples == 1:
            completion = await self._complete(engine, messages, seed, episode)
            others: list[Completion | BaseException] = []
        else:
            seeds = [None if seed is None else seed + n for n in range(policy.num_samples)]
            completions = (self._complete(engine, messages, s, episode) for s in seeds)
            first, *others = await asyncio.gather(*completions, return_exceptions=True)
            if isinstance(first, BaseException):
                raise first
            completion = first
        observation = session.observation(self._manifest, completion)
        confidence = judge_answer(
            policy, completion.mean_logprob, self._agreement(observation, others)
        )
        if confidence.low and policy.below == "refuse":
            raise EngineError(
                f"the simulator is not sure of its answer ({_describe(confidence)}); mask this"
                " step, or act otherwise",
                kind="unsure",
                retryable=self._manifest.sampling.temperature > 0,
            )
        return StepObservation(observation, confidence, engine.usage, engine.queued_seconds)

    async def _complete(
        self, engine: MeteredEngine, messages: Sequence[Message], seed: int | None, episode: str
    ) -> Completion:
        request = CompletionRequest(messages, self._manifest.sampling, seed, episode)
        try:
            return await engine.complete(request)
        except EngineError as error:
            # if the prompt leaves too little room for the answer, more tokens cannot help
            session.check_context(self._manifest, error.num_prompt_tokens)
            raise

    def _agreement(
        self, observation: str, others: Sequence[Completion | BaseException]
    ) -> float | None:
        """A failed sample is ignored; one without an observation does not agree."""
        completions = [other for other in others if isinstance(other, Completion)]
        if not completions:
            return None
        return sum(self._agrees(other, observation) for other in completions) / len(completions)

    def _agrees(self, other: Completion, observation: str) -> bool:
        try:
            return session.observation(self._manifest, other) == observation
        except EngineError:
            return False


def judge_answer(
    policy: ConfidencePolicy, mean_logprob: float | None, agreement: float | None
) -> Confidence:
    """The confidence of an answer; below a threshold, an unknown value counts as low."""
    low = _is_low(mean_logprob, policy.min_logprob) or _is_low(agreement, policy.min_agreement)
    if mean_logprob is agreement is None and not low:
        return _UNKNOWN  # one object for all steps in memory
    return Confidence(mean_logprob, agreement, low)


def _is_low(value: float | None, least: float | None) -> bool:
    return least is not None and (value is None or value < least)


def _describe(confidence: Confidence) -> str:
    return f"mean log-probability {confidence.mean_logprob}, agreement {confidence.agreement}"
