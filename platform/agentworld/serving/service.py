"""One pinned simulator: requests observations, judges outcomes, and returns durable answers."""

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

from agentworld.domains.tools import check_tools
from agentworld.domains.transcript import check_rule
from agentworld.engine.base import Engine
from agentworld.errors import Conflict, InputError, NotFound
from agentworld.http.schemas import Request
from agentworld.pinning.manifest import check_code
from agentworld.records.base import Digest
from agentworld.records.episode import (
    Episode,
    EpisodeOpening,
    EpisodeStep,
    ResetResult,
    Source,
    new_name,
)
from agentworld.records.message import Message
from agentworld.records.simulator import SimulatorManifest
from agentworld.rendering.episode import domain_name, episode_messages
from agentworld.serving.episodes import session
from agentworld.serving.episodes.observing import Observer
from agentworld.serving.episodes.session import StepObservation
from agentworld.serving.episodes.store import EpisodeStore, OpenEpisode
from agentworld.serving.telemetry.counts import Timings
from agentworld.serving.telemetry.metrics import States

Accelerators = Callable[[], tuple[str, ...]]
"""The engine's current accelerators, of each replica if they differ."""


class StepAnswer(NamedTuple):
    """A new or repeated step."""

    step: EpisodeStep
    timings: Timings | None
    """The durations of its parts; null if it is repeated."""


class SimulatorService:
    """The episodes of one simulator in a process."""

    def __init__(
        self,
        manifest: SimulatorManifest,
        engine: Engine,
        episode_store: EpisodeStore,
        *,
        states: States = dict,
        accelerators: Accelerators = tuple,
    ) -> None:
        """`states` has the breaker state of each replica of the engine, and `accelerators` the
        value that episodes record. Raises InputError if this code is not the pinned one.
        """
        check_code(manifest)
        self.manifest = manifest
        self.digest: Digest = manifest.digest
        self.states = states
        self.counts = episode_store.metrics.serve(self.digest, states)
        self._engine = engine
        self._observer = Observer(manifest, engine)
        self._episode_store = episode_store
        self._accelerators = accelerators

    async def reset(self, opening: EpisodeOpening, name: str | None = None) -> ResetResult:
        """Begins an episode of an open run, once for each name; null gives it a new name."""
        if opening.task:
            check_rule(opening.task.success)
        if opening.tools:
            await asyncio.to_thread(check_tools, opening.tools)
        session.check_seed(self.manifest, opening)
        if opening.accelerators:
            raise InputError("accelerators are recorded by the service; leave them out")
        episode, record = await self._begin(opening, name or new_name())
        try:
            await self._episode_store.begin(episode)
        except Conflict:
            if not await self._is_recorded(episode):
                raise
        else:
            self._keep(episode, record)
        return session.to_reset_result(episode)

    async def step(self, name: str, request: Request) -> StepAnswer:
        """Answers a step once; a failed step is not recorded and may be repeated."""
        episode = await self.load_open(name)
        while True:
            try:
                return await self._answer(episode, request)
            except Conflict:
                num_steps, episode = len(episode.steps), await self._load(name, reload=True)
                if len(episode.steps) == num_steps:
                    raise
                # Another replica continued it meanwhile, and may do so again.

    async def load_open(self, episode: str, *, reload: bool = False) -> OpenEpisode:
        """An episode in this replica's memory; with `reload`, read from the ledger again."""
        open_episode = None if reload else self._episode_store.find_open(episode)
        if open_episode is None:
            return await self._load(episode, reload=reload)
        self._check_simulator(open_episode.simulator)
        return open_episode

    async def close(self) -> None:
        """Closes the engine."""
        await self._engine.close()

    async def _answer(self, episode: OpenEpisode, request: Request) -> StepAnswer:
        arrived_at = time.perf_counter()
        async with episode.lock:
            waited_seconds = time.perf_counter() - arrived_at
            record: Episode | OpenEpisode = episode
            if session.repeated_number(episode, request):  # its texts may be erased meanwhile
                record = await self._episode(episode.id)
            if step := session.find_recorded(record, request):
                return StepAnswer(step, None)
            step_observation = await self._observe(episode, request.action)
            step = session.next_step(episode, request.action, step_observation)
            observed_at = time.perf_counter()
            await self._episode_store.record(episode, step)
        now = time.perf_counter()
        engine_seconds = step.usage.engine_seconds or None
        queued_seconds = waited_seconds + step_observation.queued_seconds
        return StepAnswer(
            step, Timings(queued_seconds, engine_seconds, now - observed_at, now - arrived_at)
        )

    async def _observe(self, episode: OpenEpisode, action: str) -> StepObservation:
        if episode.opening.replay:
            return session.replay_step(episode, action)
        messages = [*episode.history, Message(role="user", content=action)]
        seed = session.seed(self.manifest, episode.opening, len(episode.steps) + 1)
        return await self._observer.observe(messages, seed, episode.id)

    async def _load(self, name: str, *, reload: bool = False) -> OpenEpisode:
        episode = await self._episode(name)
        replay = episode.opened_with.replay
        record = await self._steps_of(replay) if replay else ()
        if reload:
            self._episode_store.drop(name)
        return self._keep(episode, record)

    def _keep(self, episode: Episode, record: tuple[EpisodeStep, ...]) -> OpenEpisode:
        return self._episode_store.keep(
            episode.id,
            lambda: OpenEpisode(episode, episode_messages(self.manifest, episode), record),
        )

    async def _steps_of(self, source: Source) -> tuple[EpisodeStep, ...]:
        return (await self._episode(source.episode)).steps[: source.step]

    async def _begin(
        self, opening: EpisodeOpening, name: str
    ) -> tuple[Episode, tuple[EpisodeStep, ...]]:
        """The new episode, and the recorded steps if it is a replay."""
        environment: dict[str, object] = {"accelerators": self._accelerators()}
        position = opening.fork or opening.replay
        if position is None:
            environment["domain"] = domain_name(self.manifest, opening)
            return Episode.new(name, self.digest, opening.model_copy(update=environment)), ()
        source = await self._episode(position.episode)
        opening = session.continue_opening(opening, source, position)
        if opening.fork:  # a replay records the accelerators of the original
            opening = opening.model_copy(update=environment)
        record = source.steps[: position.step]
        episode = Episode.new(name, self.digest, opening)
        return (episode, record) if opening.replay else (session.copy_steps(episode, record), ())

    async def _is_recorded(self, episode: Episode) -> bool:
        """Whether it exists already with the same start, on whatever accelerators."""
        try:
            current = await self._episode(episode.id)
        except (NotFound, Conflict):  # any other record of this name is not revealed
            return False
        opening = episode.opened_with
        if current.opening:
            opening = opening.model_copy(update={"accelerators": current.opening.accelerators})
        return current.first_head == Episode.new(episode.id, self.digest, opening).first_head

    async def _episode(self, name: str) -> Episode:
        episode = await self._episode_store.episode(name)
        self._check_simulator(episode.simulator)
        return episode

    def _check_simulator(self, simulator: Digest) -> None:
        if simulator != self.digest:
            raise wrong_simulator(simulator, self.digest)


def wrong_simulator(simulator: Digest, own: Digest) -> Conflict:
    """The error for a run or an episode of another simulator."""
    return Conflict(f"this belongs to simulator {simulator} and not to {own}")
