"""A trainer like ours: many concurrent episodes by the client library, with retries of every
failure.

It waits as long as a failure says, and retries. It dies at times; its successor resumes the run and
plays open episodes from their beginning, with the same actions.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import SimulatorError
from agentworld.records.episode import EpisodeOpening, Source
from agentworld.records.run import RunOpening
from campaigns.harness.journal import Journal
from campaigns.service.client import Client, Plan, draw
from campaigns.service.place import Place
from campaigns.service.wire import JournalledTransport
from make import records

_Answer = TypeVar("_Answer")
_PAUSE_SECONDS = 0.2
_CLOSING_RATE = 0.4
_ENDING_RATE = 0.01
_LOST = ("not-found", "conflict")
"""After these, an episode is given up; the checker verifies the reason."""


@dataclass
class _Seat:
    """State that survives a trainer: its episode, and the previous one."""

    plan: Plan | None = None
    episode: str | None = None
    before: tuple[Source, Plan] | None = None
    """All steps of that one but the last."""


class Trainer(Client):
    """Plays one run after another, with `seats` concurrent episodes; its name begins with its
    version.
    """

    def __init__(self, place: Place, name: str, url: str, seats: int, seed: str) -> None:
        super().__init__(name, seed)
        self._url = url
        self._simulator = place.manifest(name.partition("-")[0]).digest
        self._wire = Journal(place.folder / "wire.jsonl")
        self._responses = Journal(place.folder / "responses.jsonl")
        self._run: str | None = None
        self._seats = [_Seat() for _ in range(seats)]
        self._num_episodes = 0
        self._life: asyncio.Task[None] | None = None

    async def play(self) -> None:
        """Restarts after every death, until all is played to its end."""
        while True:
            self._life = asyncio.create_task(self._live())
            try:
                return await asyncio.shield(self._life)
            except asyncio.CancelledError:
                if not self._life.cancelled():
                    self._life.cancel()
                    raise

    def die(self) -> bool:
        """Dies at any point; returns whether it was alive."""
        return self._life is not None and self._life.cancel()

    def end(self) -> None:
        """Dies; its successor completes open episodes and begins nothing."""
        super().end()
        self.die()

    async def _live(self) -> None:
        transport = JournalledTransport(self.name, self._wire)
        client = SimulatorClient(
            self._url,
            simulator=self._simulator,
            attempts=3,
            timeout_seconds=6.0,
            transport=transport,
        )
        try:
            await self._enter(client)
            async with asyncio.TaskGroup() as group:
                for seat in self._seats:
                    group.create_task(self._sit(client, seat))
            await self._leave(client)
        finally:
            await client.close()

    async def _enter(self, client: SimulatorClient) -> None:
        run = self._run
        if run is not None:
            await self._patiently(lambda: client.resume_run(run))
            if self._random.random() < _CLOSING_RATE:
                await self._leave(client)
        if self._run is None:
            simulator = self._simulator if self._random.random() < 0.5 else None
            opening = RunOpening(
                agent=self.name, starting_weights=records.digest("starting"), simulator=simulator
            )
            self._run = (await self._patiently(lambda: client.open_run(opening))).id

    async def _leave(self, client: SimulatorClient) -> None:
        """Closes the run, with any open episodes."""
        await self._patiently(lambda: client.close_run(records.digest("final")))
        self._run, self._seats = None, [_Seat() for _ in self._seats]

    async def _sit(self, client: SimulatorClient, seat: _Seat) -> None:
        while not (self._ending and seat.episode is None):
            try:
                await self._play(client, seat)
            except SimulatorError:
                seat.episode = None

    async def _play(self, client: SimulatorClient, seat: _Seat) -> None:
        num_steps = 0
        if seat.episode is None:
            seat.plan = self._next_plan(seat)
            opening = seat.plan.opening
            new_episode = await self._patiently(lambda: client.begin(opening))
            seat.episode, num_steps = new_episode.episode, new_episode.step
        assert seat.plan is not None
        episode, number = seat.episode, num_steps
        for number, action in enumerate(seat.plan.actions[num_steps:], num_steps + 1):
            if await self._step(client, episode, number, action):
                break
            if self._random.random() < _ENDING_RATE:
                await self._patiently(lambda: client.end(episode))
                break
        if number > 1:
            seat.before = Source(episode=episode, step=number - 1), seat.plan
        seat.episode = None

    async def _step(self, client: SimulatorClient, episode: str, number: int, action: str) -> bool:
        result = await self._patiently(lambda: client.step(episode, action))
        request = {"client": self.name, "episode": episode, "step": number, "action": action}
        self._responses.write(**request, result=result._asdict())
        self.num_steps += 1
        return result.done

    def _next_plan(self, seat: _Seat) -> Plan:
        """A new episode, or at times a fork or a replay of the previous one."""
        self._num_episodes += 1
        assert self._run is not None
        kind = self._random.random()
        if seat.before and kind < 0.15:
            source, plan = seat.before
            if kind < 0.05:
                opening = EpisodeOpening(run=self._run, replay=source)
                return Plan(opening, plan.actions[: source.step])
            return Plan(EpisodeOpening(run=self._run, fork=source), plan.actions)
        return draw(self._run, f"{self.name}-{self._num_episodes}.txt: kolu", self._random)

    async def _patiently(self, ask: Callable[[], Awaitable[_Answer]]) -> _Answer:
        while True:
            try:
                return await ask()
            except SimulatorError as error:
                failure = {"kind": error.kind, "retryable": error.retryable, "message": str(error)}
                self._responses.write(client=self.name, error=failure)
                if error.kind in _LOST:
                    raise
                pause = error.retry_after_seconds or _PAUSE_SECONDS
            await asyncio.sleep(pause * self._random.uniform(1, 1.5))
