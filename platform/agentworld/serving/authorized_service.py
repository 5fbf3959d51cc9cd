"""The operations of every protocol, with the rights and limits of one caller.

Another tenant's runs and episodes look as if they did not exist. The simulator is that of the run;
a request cannot choose it.
"""

from contextlib import suppress
from typing import NamedTuple

from starlette.types import Scope

from agentworld.access import Access, Caller
from agentworld.domains.tools import Toolbox
from agentworld.errors import InputError, NotFound
from agentworld.http.naming import AnsweringSimulator
from agentworld.http.schemas import Request
from agentworld.ledger.runs import Owner
from agentworld.records.base import Digest
from agentworld.records.episode import (
    Episode,
    EpisodeOpening,
    EpisodeStep,
    ResetResult,
    StepResult,
    text_bytes,
)
from agentworld.records.run import AgentRun, OpenedRun, RunClosing, RunOpening
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.statements.edge import Claim, SignedEdge
from agentworld.records.step_statement import StepStatement
from agentworld.serving.episodes import session
from agentworld.serving.episodes.quota import Quota
from agentworld.serving.episodes.store import EpisodeStore, OpenEpisode
from agentworld.serving.runs import Runs
from agentworld.serving.service import SimulatorService
from agentworld.serving.simulators.base import SimulatorRequest
from agentworld.serving.simulators.connections import Simulators


class AppState(NamedTuple):
    """The state that all protocols of a process share."""

    simulators: Simulators
    episode_store: EpisodeStore
    runs: Runs
    access: Access
    quota: Quota


class AuthorizedService:
    """The service with the rights of one caller."""

    __slots__ = ("_answering", "_app_state", "_protocol", "caller")

    def __init__(self, scope: Scope, protocol: str = "http") -> None:
        self._app_state: AppState = scope["app"].state.app_state
        self.caller: Caller = scope["caller"]
        self._answering = AnsweringSimulator.of(scope)
        self._protocol = protocol

    async def open_run(self, opening: RunOpening, name: str | None = None) -> OpenedRun:
        """Opens a run of the caller's tenant."""
        caller, app_state = self.caller, self._app_state
        self._check_opens()
        if caller.name != caller.tenant:  # of an API key or a service account
            opening = opening.model_copy(update={"opened_by": caller.name})
        async with app_state.quota.run(caller.tenant, name):
            run = await app_state.runs.open(opening, name, caller.tenant)
        self._answering.simulator = run.simulator
        return OpenedRun(run=run, token=app_state.access.run_token(run.id, caller.tenant))

    async def meaning(self, alias: str) -> Digest:
        """The simulator that this name gives a new run, without a canary; raises as `open_run`."""
        self._check_opens()
        simulators = self._app_state.simulators
        simulator = await simulators.resolve(SimulatorRequest(alias, None, self.caller.tenant))
        simulators.check(simulator)
        return simulator

    async def run(self, run: str) -> AgentRun:
        """A run that the caller may see."""
        await self.simulator_of(run)
        return await self._app_state.runs.get(run)

    async def close_run(self, run: str, closing: RunClosing) -> AgentRun:
        """Closes a run of the caller's tenant."""
        await self._check_owns(run, _no_run(run))
        await self._simulator(run)
        return await self._app_state.runs.close(run, closing)

    async def attest(self, run: str, claim: Claim) -> SignedEdge:
        """Signs which simulator made an agent, in a run of the caller's tenant.

        A run token is an agent's, which must not make claims about itself.
        """
        if self.caller.run is not None:
            raise InputError("a run token cannot attest an agent; use an API key")
        await self._check_owns(run, _no_run(run))
        await self._simulator(run)
        return await self._app_state.runs.attest(run, claim)

    async def file(self, statement: StepStatement) -> str:
        """Stores a statement that a step signed, from any caller that is not an agent in a run."""
        self.caller.check("agent")
        if self.caller.run is not None:
            raise InputError("a run token cannot store statements; use an API key")
        return await self._app_state.runs.file(statement)

    async def reset(self, opening: EpisodeOpening, name: str | None = None) -> ResetResult:
        """Begins an episode in a run of the tenant; may fork or replay one that the caller sees."""
        await self._check_owns(opening.run, _no_run(opening.run))
        for source in (opening.fork, opening.replay):
            if source is not None:
                await self._check_sees_episode(source.episode)
        quota, tenant = self._app_state.quota, self.caller.tenant
        allowed = quota.check(tenant)
        service = await self._service(opening.run)
        async with quota.episode(tenant, name):
            result = await service.reset(opening, name)
        if allowed:
            allowed.charge(0, len(text_bytes(opening.text)))
        return result

    async def step(self, episode: str, request: Request) -> StepResult:
        """Takes the next step of one of the caller's episodes, or repeats an earlier one."""
        target = self._find_episode_service(episode) or await self._load_episode_service(episode)
        step = await self._take(target.service, episode, request)
        return session.to_step_result(target.service.digest, target.run, step)

    async def take(self, episode: str, request: Request) -> EpisodeStep:
        """The same, with the step's usage."""
        target = self._find_episode_service(episode) or await self._load_episode_service(episode)
        return await self._take(target.service, episode, request)

    def check_allowed(self) -> None:
        """Raises AccessError if the tenant has reached a limit."""
        self._app_state.quota.check(self.caller.tenant)

    async def check_in(self, run: str, episode: str) -> None:
        """Raises NotFound for an episode that is not in this run, whether or not it exists."""
        await self._check_sees(run, _no_run(run))
        with suppress(NotFound):
            if await self._app_state.episode_store.run_of(episode) == run:
                return
        raise NotFound(f"there is no episode {episode} in run {run}; reset to begin one")

    async def simulator_of(self, run: str) -> Digest:
        """The simulator of a run that the caller may see."""
        await self._check_sees(run, _no_run(run))
        return await self._simulator(run)

    async def service_of(self, run: str) -> SimulatorService:
        """The service of a run that the caller may see."""
        return await self._app_state.simulators.find(await self.simulator_of(run))

    async def manifest(self, simulator: Digest | None = None) -> SimulatorManifest:
        """The manifest of a simulator, or of the only one, which every caller may see."""
        simulators = self._app_state.simulators
        digest = simulator or simulators.single
        if digest is None:
            raise NotFound(
                "this service has many simulators; name one, as in /simulators/DIGEST/manifest"
            )
        service = await simulators.find(digest)
        self._answering.simulator = digest
        return service.manifest

    async def episode(self, episode: str) -> Episode:
        """An episode that the caller may see."""
        await self._simulator(await self._check_sees_episode(episode))
        return await self._app_state.episode_store.episode(episode)

    async def wait_settled(self, episode: str) -> Episode:
        """The same, after its running step on this replica has ended."""
        await self._simulator(await self._check_sees_episode(episode))
        return await self._app_state.episode_store.wait_settled(episode)

    async def load_open(self, episode: str, *, reload: bool = False) -> OpenEpisode:
        """The same as an open episode of this replica.

        It is read from the ledger only if this replica does not hold it, or with `reload`, because
        another replica may have continued it.
        """
        service = await self._service(await self._check_sees_episode(episode))
        return await service.load_open(episode, reload=reload)

    async def toolbox(self, episode: str) -> Toolbox:
        """The tools of an episode that the caller may see."""
        service = await self._service(await self._check_sees_episode(episode))
        open_episode = await service.load_open(episode)
        return Toolbox.of(open_episode.domain, open_episode.opening)

    async def close_episode(self, episode: str) -> None:
        """Ends one of the caller's episodes."""
        await self._simulator(await self._check_owns_episode(episode))
        await self._app_state.episode_store.end(episode)

    async def _take(self, service: SimulatorService, episode: str, request: Request) -> EpisodeStep:
        allowed = self._app_state.quota.step(self.caller.tenant)
        step, timings = await service.step(episode, request)
        if timings:
            service.counts.count_step(self._protocol, timings, step.usage)
        if timings and allowed:
            num_bytes = len(text_bytes(request.action)) + len(text_bytes(step.observation or ""))
            allowed.charge(step.usage.input_tokens + step.usage.output_tokens, num_bytes)
        return step

    def _find_episode_service(self, episode: str) -> "_EpisodeService | None":
        """The service of a caller's episode, if it is known without a query, as for most steps."""
        caller, app_state = self.caller, self._app_state
        open_episode = app_state.episode_store.find_open(episode)
        if open_episode is None or "agent" not in caller.roles:
            return None
        run = open_episode.opening.run
        if caller.run is None:
            is_own = app_state.episode_store.owners.is_known_owner(run, caller.tenant)
        else:
            is_own = caller.run == run
        service = app_state.simulators.connected.get(open_episode.simulator)
        if service is None or not is_own:
            return None
        self._answering.simulator = open_episode.simulator
        return _EpisodeService(service, run)

    async def _load_episode_service(self, episode: str) -> "_EpisodeService":
        run = await self._check_owns_episode(episode)
        return _EpisodeService(await self._service(run), run)

    async def _service(self, run: str) -> SimulatorService:
        """The service of a run that the caller may access."""
        return await self._app_state.simulators.find(await self._simulator(run))

    async def _simulator(self, run: str) -> Digest:
        """The simulator of a run that the caller may access, because errors here reveal the run."""
        simulator = (await self._owner(run)).simulator
        self._app_state.simulators.check(simulator)
        self._answering.simulator = simulator
        return simulator

    def _check_opens(self) -> None:
        self.caller.check("agent")
        if self.caller.run is not None:
            raise InputError("a run token cannot open another run; use an API key")

    async def _check_owns_episode(self, episode: str) -> str:
        self.caller.check("agent")
        run = await self._app_state.episode_store.run_of(episode)
        await self._check_owns(run, _no_episode(episode))
        return run

    async def _check_sees_episode(self, episode: str) -> str:
        # nothing else is read before, because a run's state reveals that it exists
        self.caller.check("agent", "auditor")
        run = await self._app_state.episode_store.run_of(episode)
        await self._check_sees(run, _no_episode(episode))
        return run

    async def _check_owns(self, run: str, message: str) -> None:
        """Raises NotFound unless the run belongs to the caller's tenant, or to their run token."""
        self.caller.check("agent")
        if self.caller.run == run:
            return
        owner = await self._owner(run)
        if self.caller.run is not None or owner.tenant != self.caller.tenant:
            raise NotFound(message)

    async def _check_sees(self, run: str, message: str) -> None:
        self.caller.check("agent", "auditor")
        if "auditor" not in self.caller.roles:
            await self._check_owns(run, message)
        await self._owner(run)

    async def _owner(self, run: str) -> Owner:
        """A caller with the run's token knows that the run exists; no other caller may learn it."""
        try:
            return await self._app_state.episode_store.owners.of(run)
        except NotFound as error:
            was_opened = self.caller.run == run
            raise NotFound(_lost_run(run) if was_opened else _no_run(run)) from error


class _EpisodeService(NamedTuple):
    """An episode's service."""

    service: SimulatorService
    run: str


def _no_run(run: str) -> str:
    return f"there is no run {run}; open one by POST /runs or `agentworld run open`"


def _lost_run(run: str) -> str:
    return f"run {run} was opened and the ledger has it no more; have it restored, or open another"


def _no_episode(episode: str) -> str:
    return (
        f"there is no episode {episode}; reset to begin one, or see `agentworld episode list RUN`"
    )
