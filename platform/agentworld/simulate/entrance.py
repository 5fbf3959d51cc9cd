"""What every door calls: the service, for one caller, as far as they may and within their limits.

What belongs to somebody else is not there: the answer is the one for a name that nobody gave.
"""

from contextlib import suppress
from typing import NamedTuple

from agentworld.access import Access, Caller
from agentworld.domains.tools import tools_of
from agentworld.errors import InputError, NotFound
from agentworld.records.episode import (
    Episode,
    EpisodeOpening,
    EpisodeStep,
    ResetResult,
    StepResult,
    text_bytes,
)
from agentworld.records.run import AgentRun, OpenedRun, RunClosing, RunOpening
from agentworld.records.tool import Tool
from agentworld.simulate import session
from agentworld.simulate.allowance import Allowance
from agentworld.simulate.metrics import Door
from agentworld.simulate.open_episodes import OpenEpisode
from agentworld.simulate.service import SimulatorService
from agentworld.simulate.session import Request


class House(NamedTuple):
    """What all entrances of a process share."""

    service: SimulatorService
    access: Access
    allowance: Allowance


class Entrance:
    """The service as one caller sees it."""

    __slots__ = ("_access", "_allowance", "_door", "caller", "service")

    def __init__(self, house: House, caller: Caller, door: Door = "http") -> None:
        self.service = house.service
        self._access = house.access
        self.caller = caller
        self._allowance = house.allowance
        self._door: Door = door

    async def open_run(self, opening: RunOpening, name: str | None = None) -> OpenedRun:
        """Begins a run of the caller's tenant."""
        caller = self.caller
        caller.check("agent")
        if caller.run is not None:
            raise InputError("a run's token opens no other run; ask with an API key")
        if caller.name != caller.tenant:  # somebody whom access was checked for
            opening = opening.model_copy(update={"opened_by": caller.name})
        async with self._allowance.run(caller.tenant, name):
            run = await self.service.open_run(opening, name, caller.tenant)
        return OpenedRun(run=run, token=self._access.run_token(run.id, caller.tenant))

    async def run(self, run: str) -> AgentRun:
        """A run that the caller may see."""
        await self._check_sees(run, _no_run(run))
        return await self.service.run(run)

    async def close_run(self, run: str, closing: RunClosing) -> AgentRun:
        """Ends a run of the caller's tenant."""
        await self._check_owns(run, _no_run(run))
        return await self.service.close_run(run, closing)

    async def reset(self, opening: EpisodeOpening, name: str | None = None) -> ResetResult:
        """Begins an episode in a run of the caller's tenant, or from one that they may see."""
        await self._check_owns(opening.run, _no_run(opening.run))
        for source in (opening.fork, opening.replay):
            if source is not None:
                await self._check_sees_episode(source.episode)
        allowed = self._allowance.check(self.caller.tenant)
        async with self._allowance.episode(self.caller.tenant, name):
            begun = await self.service.reset(opening, name)
        if allowed:
            allowed.used(0, len(text_bytes(opening.text)))
        return begun

    async def step(self, episode: str, request: Request) -> StepResult:
        """Takes the next step of one of the caller's episodes, or repeats an earlier one."""
        run = self._known_run(episode) or await self._check_owns_episode(episode)
        return session.answered(self.service.digest, run, await self._take(episode, request))

    async def take(self, episode: str, request: Request) -> EpisodeStep:
        """The same, and what it cost."""
        await self._check_owns_episode(episode)
        return await self._take(episode, request)

    def check_allowed(self) -> None:
        """Raises AccessError where the tenant has used what it may for now."""
        self._allowance.check(self.caller.tenant)

    async def check_in(self, run: str, episode: str) -> None:
        """Raises NotFound for an episode that is not this run's, be it there or not."""
        await self._check_sees(run, _no_run(run))
        with suppress(NotFound):
            if await self.service.run_of(episode) == run:
                return
        raise NotFound(f"there is no episode {episode} in run {run}; reset to begin one")

    async def simulator_of(self, run: str) -> SimulatorService:
        """What serves a run that the caller may see."""
        await self._check_sees(run, _no_run(run))
        return self.service

    async def episode(self, episode: str) -> Episode:
        """An episode that the caller may see."""
        await self._check_sees_episode(episode)
        return await self.service.episode(episode)

    async def known(self, episode: str, *, anew: bool = False) -> OpenEpisode:
        """The same as this replica goes on with it: nothing is read of one that it holds, unless
        `anew`, for another replica may have gone on with it.
        """
        await self._check_sees_episode(episode)
        return await self.service.known(episode, anew=anew)

    async def tools(self, episode: str) -> tuple[Tool, ...]:
        """What may be called in an episode that the caller may see."""
        await self._check_sees_episode(episode)
        opening = (await self.service.known(episode)).opening
        return tools_of(self.service.manifest.domains, opening)

    async def close_episode(self, episode: str) -> None:
        """Ends one of the caller's episodes."""
        await self._check_owns_episode(episode)
        await self.service.close_episode(episode)

    async def _take(self, episode: str, request: Request) -> EpisodeStep:
        allowed = self._allowance.step(self.caller.tenant)
        step, timings = await self.service.step(episode, request)
        if timings:
            self.service.metrics.stepped(self._door, timings, step.usage)
        if timings and allowed:
            num_bytes = len(text_bytes(request.action)) + len(text_bytes(step.observation or ""))
            allowed.used(step.usage.input_tokens + step.usage.output_tokens, num_bytes)
        return step

    def _known_run(self, episode: str) -> str | None:
        """The run of an episode that is the caller's, where nobody has to be asked: most steps."""
        caller, held = self.caller, self.service.held(episode)
        if held is None or "agent" not in caller.roles:
            return None
        run = held.opening.run
        if caller.run is None:
            return run if self.service.owners.knows(run, caller.tenant) else None
        return run if caller.run == run else None

    async def _check_owns_episode(self, episode: str) -> str:
        self.caller.check("agent")
        run = await self.service.run_of(episode)
        await self._check_owns(run, _no_episode(episode))
        return run

    async def _check_sees_episode(self, episode: str) -> None:
        # Nothing else of it is read before: its state tells that it is there.
        self.caller.check("agent", "auditor")
        await self._check_sees(await self.service.run_of(episode), _no_episode(episode))

    async def _check_owns(self, run: str, otherwise: str) -> None:
        """May act in it: the run is the caller's tenant's, or the one of their token."""
        self.caller.check("agent")
        if self.caller.run == run:
            return
        tenant = await self.service.owners.tenant_of(run)
        if self.caller.run is not None or tenant != self.caller.tenant:
            raise NotFound(otherwise)

    async def _check_sees(self, run: str, otherwise: str) -> None:
        self.caller.check("agent", "auditor")
        if "auditor" not in self.caller.roles:
            await self._check_owns(run, otherwise)
        await self.service.owners.tenant_of(run)


def _no_run(run: str) -> str:
    """In the ledger's words, as for a name that nobody gave."""
    return f"there is no run {run}; open one first"


def _no_episode(episode: str) -> str:
    return f"there is no episode {episode}; reset to begin one"
