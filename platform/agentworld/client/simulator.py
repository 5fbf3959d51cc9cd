"""A simulator over HTTP: typed failures, and a step is taken once however often it was sent."""

import asyncio
from typing import TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from agentworld.engine.connections import Connections
from agentworld.errors import InputError, SimulatorError
from agentworld.records.base import Digest, Record, first_problem
from agentworld.records.run import (
    AgentRun,
    EpisodeOpening,
    ResetResult,
    RunOpening,
    StepResult,
)
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.task import Task

SIMULATOR_HEADER = "x-agentworld-simulator"
"""The manifest's digest, on every response."""

_PAUSE_SECONDS = 0.05

_Answer = TypeVar("_Answer", bound=Record)


class _Problem(BaseModel):
    kind: str
    message: str
    retryable: bool


class _Failure(BaseModel):
    error: _Problem


class SimulatorClient:
    """One run with one simulator; what the service cannot do is a SimulatorError.

    An answer that carries another digest than the first one did is an error. A request whose
    answer got lost on the way is sent again where that is safe: the service knows a step by
    its number and takes it once.
    """

    def __init__(
        self,
        url: str,
        *,
        simulator: Digest | None = None,
        attempts: int = 5,
        concurrency: int = 64,
        timeout_seconds: float = 300.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.run: AgentRun | None = None
        self.simulator = simulator
        self._attempts = attempts
        self._taken: dict[str, int] = {}
        self._connections = Connections(
            url, concurrency=concurrency, timeout_seconds=timeout_seconds, transport=transport
        )

    async def manifest(self) -> SimulatorManifest:
        """What the simulator is pinned to; raises SimulatorError when it names another digest."""
        manifest = await self._ask(SimulatorManifest, "GET", "/manifest", again=True)
        self._check_digest(manifest.digest)
        return manifest

    async def open_run(self, opening: RunOpening) -> AgentRun:
        """Begins a run, and from now on takes no answer from another simulator."""
        return self._enter(await self._ask(AgentRun, "POST", "/runs", opening))

    async def resume_run(self, run: str) -> AgentRun:
        """Continues a run that an earlier process opened."""
        return self._enter(await self._ask(AgentRun, "GET", f"/runs/{run}", again=True))

    async def close_run(self, final_weights: Digest) -> AgentRun:
        """Ends the run with the weights that it made."""
        path, body = f"/runs/{self._entered().id}/close", {"final_weights": final_weights}
        self.run = await self._ask(AgentRun, "POST", path, body, again=True)
        return self.run

    async def reset(self, task: Task) -> str:
        """Begins an episode with a task; returns its id."""
        return (await self.begin(EpisodeOpening(run=self._entered().id, task=task))).episode

    async def begin(self, opening: EpisodeOpening) -> ResetResult:
        """Begins an episode, with a task or without."""
        result = await self._ask(ResetResult, "POST", "/reset", opening)
        self._taken[result.episode] = result.step
        return result

    async def step(self, episode: str, action: str) -> StepResult:
        """Takes the next action; after a failure the same step may be tried again."""
        number = self._taken.get(episode, 0) + 1
        body = {"episode": episode, "action": action, "step": number}
        result = await self._ask(StepResult, "POST", "/step", body, again=True)
        self._taken[episode] = number
        return result

    async def close(self) -> None:
        """Lets go of connections; the run stays as it is."""
        await self._connections.close()

    def _enter(self, run: AgentRun) -> AgentRun:
        self._check_digest(run.simulator)
        self.run = run
        return run

    def _entered(self) -> AgentRun:
        if self.run is None:
            raise InputError("no run is open; call open_run or resume_run first")
        return self.run

    async def _ask(
        self,
        record: type[_Answer],
        method: str,
        path: str,
        body: object = None,
        *,
        again: bool = False,
    ) -> _Answer:
        """`again` says that the service may get the request twice."""
        lost = httpx.TransportError if again else httpx.ConnectError
        response = await self._send(method, path, body, lost)
        self._check_digest(response.headers.get(SIMULATOR_HEADER))
        if response.is_error:
            raise _failure(response)
        try:
            return record.model_validate_json(response.content)
        except ValidationError as error:
            raise SimulatorError(
                f"the simulator's answer is no {record.__name__}: {first_problem(error)}",
                kind="protocol",
            ) from error

    async def _send(
        self, method: str, path: str, body: object, lost: type[httpx.TransportError]
    ) -> httpx.Response:
        content = body.model_dump(mode="json") if isinstance(body, Record) else body
        attempt = 1
        while True:
            try:
                return await self._connections.request(method, path, content)
            except httpx.TransportError as error:
                if attempt >= self._attempts or not isinstance(error, lost):
                    raise SimulatorError(
                        f"the simulator at {self._connections.url} gave no answer"
                        f" ({type(error).__name__}); is it running?",
                        retryable=True,
                    ) from error
            await asyncio.sleep(_PAUSE_SECONDS * 2**attempt)
            attempt += 1

    def _check_digest(self, found: str | None) -> None:
        self.simulator = self.simulator or found
        if found is None or found != self.simulator:
            raise SimulatorError(
                f"simulator {found} answers where {self.simulator} was expected; a run never"
                " moves to another one",
                kind="swapped",
            )


def _failure(response: httpx.Response) -> SimulatorError:
    try:
        problem = _Failure.model_validate_json(response.content).error
    except ValidationError:
        said = " ".join(response.text.split())[:200]
        return SimulatorError(
            f"the simulator answered with status {response.status_code}: {said!r}",
            kind="protocol",
            retryable=response.is_server_error,
        )
    return SimulatorError(problem.message, kind=problem.kind, retryable=problem.retryable)
