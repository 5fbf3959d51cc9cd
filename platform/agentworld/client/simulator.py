"""The client of a simulator over HTTP: typed errors, and steps that are safe to retry."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import httpx
from pydantic import TypeAdapter, ValidationError

from agentworld.client.answers import read_episode, read_failure, read_step, simulator_of
from agentworld.client.credential import START_SECONDS, Credential, authorisation, split_credential
from agentworld.client.repeats import Repeats
from agentworld.client.trajectory import TrajectoryLog
from agentworld.engine.connections import Connections
from agentworld.errors import InputError, SimulatorError
from agentworld.records.base import Digest, Record, first_problem
from agentworld.records.episode import (
    Episode,
    EpisodeOpening,
    ResetResult,
    StepResult,
    new_name,
)
from agentworld.records.run import AgentRun, OpenedRun, RunClosing, RunOpening
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.statements.edge import Claim, SignedEdge
from agentworld.records.step_statement import StepStatement
from agentworld.records.task import Task
from agentworld.records.trajectory_log import (
    Sampled,
    TrajectoryBegin,
    TrajectoryEnd,
    trajectory_lines,
)

SIMULATOR_HEADER = "x-agentworld-simulator"
"""The header with the manifest's digest: on every response of a service with one simulator; in a
service with several, on responses about a run or an episode.
"""

_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 8.0
"""Seconds before a retry of a request without a response: the first delay doubles up to this."""

_Answer = TypeVar("_Answer")


class _Progress(NamedTuple):
    """The position in an episode, as this client knows it."""

    run: str = ""
    step: int = 0
    is_over: bool = False


class SimulatorClient:
    """One run with one simulator; a failure is a SimulatorError. A response with another digest
    than the first response is an error. A request without a response is retried if that is safe:
    the service identifies a step by its number and takes it once. Temporary refusals (capacity, a
    restarting engine) are retried after the delay that the service states, at most `attempts`
    times. An engine without a replica is retried until `start_seconds` have passed; each of these
    retries is logged.

    `credential` is an API key, a run token, or a function that returns one for each request; a run
    token may also be in the address, as in http://run:TOKEN@host. The client sends the credential
    in a header only. It writes actions and observations to `trajectory`, if given, before the agent
    sees the observation.
    """

    def __init__(
        self,
        url: str,
        *,
        simulator: Digest | None = None,
        credential: Credential | None = None,
        trajectory: TrajectoryLog | None = None,
        attempts: int = 5,
        start_seconds: float = START_SECONDS,
        concurrency: int = 64,
        timeout_seconds: float = 300.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.run: AgentRun | None = None
        self.run_token: str | None = None
        """The token of the opened run, for other processes."""
        self.simulator = simulator
        address, url_credential = split_credential(url)
        self._authorisation = authorisation(credential or url_credential)
        self._trajectory = trajectory
        self._attempts = attempts
        self._start_seconds = start_seconds
        self._episodes: dict[str, _Progress] = {}
        self._connections = Connections(
            address,
            concurrency=concurrency,
            timeout_seconds=timeout_seconds,
            transport=transport,
        )

    async def manifest(self) -> SimulatorManifest:
        """The manifest of the run's simulator, or the service's own if no run is open.

        Raises SimulatorError if it has another digest.
        """
        read = SimulatorManifest.model_validate_json
        path = f"/simulators/{_quoted(self.simulator)}/manifest" if self.simulator else "/manifest"
        return await self._ask(read, "GET", path, resend=True)

    async def open_run(self, opening: RunOpening, name: str | None = None) -> AgentRun:
        """Opens a run, once for each name; later responses must come from the same simulator."""
        headers = {"idempotency-key": name or new_name()}
        opened_run = await self._ask(
            _OPENED, "POST", "/runs", opening, resend=True, headers=headers
        )
        self.run_token = opened_run.token
        return self._enter(opened_run.run)

    async def resume_run(self, run: str) -> AgentRun:
        """Continues a run that an earlier process opened."""
        return self._enter(await self._ask(_RUN, "GET", f"/runs/{_quoted(run)}", resend=True))

    async def close_run(self, final_weights: Digest, signature: str | None = None) -> AgentRun:
        """Closes the run with its final weights; their writer may prove them by a signature."""
        closing = RunClosing(final_weights=final_weights, signature=signature)
        path = f"/runs/{self._current_run().id}/close"
        self.run = await self._ask(_RUN, "POST", path, closing, resend=True)
        return self.run

    async def attest(self, claim: Claim) -> SignedEdge:
        """Requests a signed edge for the agent that the run made."""
        path = f"/runs/{self._current_run().id}/edge"
        return await self._ask(_EDGE, "PUT", path, claim, resend=True)

    async def file(self, statement: StepStatement) -> str:
        """Stores a step's signed statement; returns its name at the service."""
        return await self._ask(_NAME, "PUT", "/statements", statement, resend=True, of_one=False)

    async def meaning(self, alias: str) -> Digest:
        """Resolves an alias to its current simulator, for a credential that may open runs with it.

        Raises SimulatorError, of kind `not-found` for an unknown alias.
        """
        path = f"/aliases/{_quoted(alias)}/simulator"
        return await self._ask(_DIGEST, "GET", path, resend=True, of_one=False)

    async def reset(self, task: Task) -> str:
        """Begins an episode with a task; returns its id."""
        return (await self.begin(EpisodeOpening(run=self._current_run().id, task=task))).episode

    async def begin(self, opening: EpisodeOpening) -> ResetResult:
        """Begins an episode, with or without a task."""
        headers = {"idempotency-key": new_name()}
        result = await self._ask(_RESET, "POST", "/episodes", opening, resend=True, headers=headers)
        if self._trajectory:
            self._trajectory.write(TrajectoryBegin.of(result, opening.task))
        self._episodes[result.episode] = _Progress(result.run, result.step)
        return result

    async def step(self, episode: str, action: str, sampled: Sampled | None = None) -> StepResult:
        """Takes the next action; after a failure the same step may be repeated.

        `sampled` is the policy's full output; without it only the action is recorded.
        """
        before = self._episodes.get(episode, _Progress())
        number = before.step + 1
        body = {"episode": episode, "action": action, "step": number}
        result = await self._ask(
            lambda answer: read_step(answer, episode, number), "POST", "/steps", body, resend=True
        )
        if self._trajectory:
            self._trajectory.write(*trajectory_lines(result, action, sampled or Sampled(action)))
        self._episodes[episode] = _Progress(result.run, number, is_over=result.done)
        return result

    async def end(self, episode: str) -> None:
        """Ends an episode early."""
        path = f"/episodes/{_quoted(episode)}/close"
        await self._ask(lambda _: None, "POST", path, resend=True)
        progress = self._episodes.pop(episode, None)
        if self._trajectory and progress and not progress.is_over:
            self._trajectory.write(TrajectoryEnd(progress.run, episode, progress.step, "closed"))

    async def episode(self, episode: str) -> Episode:
        """The simulator's record of an episode."""
        return await self._ask(read_episode, "GET", f"/episodes/{_quoted(episode)}", resend=True)

    async def close(self) -> None:
        """Closes the connections; the run stays open."""
        await self._connections.close()

    def _enter(self, run: AgentRun) -> AgentRun:
        self.run = run
        return run

    def _current_run(self) -> AgentRun:
        if self.run is None:
            raise InputError("no run is open; call open_run or resume_run first")
        return self.run

    async def _ask(
        self,
        read: Callable[[bytes], _Answer],
        method: str,
        path: str,
        body: object = None,
        *,
        resend: bool = False,
        of_one: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> _Answer:
        """`resend` allows a retry that the service may receive twice; `of_one` requires the
        simulator's digest in the response.
        """
        retry_on = httpx.TransportError if resend else httpx.ConnectError
        send = partial(self._send, method, path, body, headers or {}, retry_on)
        response = await self._send_with_retries(send)
        try:
            answer = read(response.content)
        except ValueError as error:
            problem = first_problem(error) if isinstance(error, ValidationError) else str(error)
            raise SimulatorError(
                f"the simulator's response to {path} is invalid: {problem}", kind="protocol"
            ) from error
        if of_one:
            self._check_digest(simulator_of(answer) or response.headers.get(SIMULATOR_HEADER))
        return answer

    async def _send_with_retries(
        self, send: Callable[[], Awaitable[httpx.Response]]
    ) -> httpx.Response:
        """The first response without an error; retries after the delays that the service states."""
        repeats = Repeats(self._attempts, self._start_seconds)
        while True:
            response = await send()
            if digest := response.headers.get(SIMULATOR_HEADER):
                self._check_digest(digest)
            if not response.is_error:
                return response
            await repeats.wait(read_failure(response.status_code, response.content))

    async def _send(
        self,
        method: str,
        path: str,
        body: object,
        headers: Mapping[str, str],
        retry_on: type[httpx.TransportError],
    ) -> httpx.Response:
        value = body.model_dump(mode="json") if isinstance(body, Record) else body
        # ASCII, because an action may have lone surrogates
        content = None if value is None else json.dumps(value, separators=(",", ":")).encode()
        attempt, pause = 1, _PAUSE_SECONDS
        while True:
            all_headers = {**_JSON, **self._authorisation(), **headers}
            try:
                return await self._connections.request(method, path, content, all_headers)
            except httpx.TransportError as error:
                if attempt >= self._attempts or not isinstance(error, retry_on):
                    raise SimulatorError(
                        f"the simulator at {self._connections.url} did not answer"
                        f" ({type(error).__name__}); is it running?",
                        retryable=True,
                    ) from error
            await asyncio.sleep(pause)
            attempt, pause = attempt + 1, min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _check_digest(self, digest: str | None) -> None:
        self.simulator = self.simulator or digest
        if digest is None or digest != self.simulator:
            raise SimulatorError(
                f"simulator {digest} answered instead of {self.simulator}; a run never changes its"
                " simulator",
                kind="swapped",
            )


_JSON = {"content-type": "application/json"}
_quoted = partial(quote, safe="")
_RUN = AgentRun.model_validate_json
_EDGE = SignedEdge.model_validate_json
_OPENED = OpenedRun.model_validate_json
_RESET = ResetResult.model_validate_json
_DIGEST = TypeAdapter(Digest).validate_json
_NAME = TypeAdapter(str).validate_json
