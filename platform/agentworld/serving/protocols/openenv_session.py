"""Reset, step and state of the OpenEnv protocol, for both its forms, WebSocket and HTTP."""

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from agentworld.domains.base import domain_of
from agentworld.domains.tools import Toolbox
from agentworld.errors import Conflict, InputError, NotFound
from agentworld.http.schemas import Request
from agentworld.records.base import first_problem
from agentworld.records.episode import Episode, EpisodeOpening, ResetResult, StepResult
from agentworld.records.tool import Tool
from agentworld.serving.authorized_service import AuthorizedService
from agentworld.serving.episodes import session
from agentworld.serving.protocols.openenv_chain import Chain

Fields = dict[str, object]

_OF_A_CALL = {"type", "tool_name", "arguments", "metadata"}
_OWN_NAME = re.compile("[0-9a-f]{32}")
_LONGEST_NAME = 255
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class OpenEnvSession:
    """The current episode of a connection, and the number of its answered steps.

    With a `chain`, the session was created before: any connection may continue its episodes, so the
    current episode and step may have changed.
    """

    __slots__ = ("_authorized", "_chain", "_episode", "_num_steps", "_run")

    def __init__(self, authorized: AuthorizedService, run: str, chain: Chain | None = None) -> None:
        self._authorized = authorized
        self._run = run
        self._chain = chain
        self._episode: str | None = None
        self._num_steps = 0

    @property
    def name(self) -> str | None:
        """The session's name; null for a connection without a named session."""
        return self._chain.name if self._chain else None

    async def reset(self, data: Fields) -> Fields:
        """Begins an episode; with an `episode_id`, begins that one once, or continues it."""
        run, fields = self._run, dict(data)
        name = _name_of(run, fields.pop("episode_id", None))
        opening = _opening({**fields, "run": run})
        episode = await self._find(name) if name else None
        if episode is None:
            new = await self._chain.following() if self._chain else name
            return self._begin(await self._authorized.reset(opening, new))
        if episode.run != run:
            raise Conflict(f"episode {episode.id} belongs to another run; use another id")
        if self._chain and episode.id != await self._chain.current():
            raise Conflict(
                f"episode {episode.id} is not the current one of this session; connect without a"
                " session_id to continue it"
            )
        if fields:
            await self._check_same(opening, episode.id)
        self._episode, self._num_steps = episode.id, len(episode.steps)
        return _resume(episode)

    async def step(self, data: Fields) -> Fields:
        """Takes the next step of the episode: a text as its action, or a call of a tool.

        `{"type": "list_tools"}` is not a step: it lists the tools.
        """
        kind = data.get("type")
        if kind == "list_tools" and not data.keys() - {"type", "metadata"}:
            return _to_tools_answer(await self.tools())
        episode = await self._current()
        if episode is None:
            raise InputError("no episode is open on this connection; reset first")
        if kind == "call_tool" and not data.keys() - _OF_A_CALL:
            tool = data.get("tool_name")
            return _to_call_answer(tool, await self.call(tool, data.get("arguments", {}), {}))
        action = data.get("action")
        if type(action) is not str or data.keys() - {"action", "metadata"}:
            raise InputError(f"a step has a text as its action, and nothing else, not {data!r:.80}")
        return to_step_answer(await self._take(episode, action))

    async def state(self) -> Fields:
        """The episode and its progress."""
        episode, num_steps = await self._current(), self._num_steps
        if self._chain and episode:
            num_steps = len((await self._authorized.wait_settled(episode)).steps)
        fields: Fields = {"episode_id": episode, "step_count": num_steps}
        simulator = await self._authorized.simulator_of(self._run)
        return {**fields, "run": self._run, "simulator": simulator}

    async def tools(self) -> tuple[Tool, ...]:
        """The tools of the episode, or of a new episode without own tools."""
        return (await self._toolbox_in(await self._current())).tools

    async def call(self, tool: object, arguments: object, opening: Fields) -> StepResult:
        """Calls a tool as a step; begins an episode if none is open."""
        if type(tool) is not str or type(arguments) is not dict:
            raise InputError(
                f"a call has a tool's name and an object of arguments, not {tool!r:.80}"
            )
        episode = await self._current()
        toolbox = await self._toolbox_in(episode)
        self._authorized.check_allowed()  # checking the arguments costs time before the step
        action = await asyncio.to_thread(toolbox.action_of, tool, arguments)
        if episode is None:
            await self.reset(opening)
            episode = self._episode
        assert episode
        return await self._take(episode, action)

    async def close(self) -> None:
        """Ends the episode."""
        if episode := await self._current():
            await self._authorized.close_episode(episode)

    async def _take(self, episode: str, action: str) -> StepResult:
        number = None if self._chain else self._num_steps + 1
        result = await self._authorized.step(episode, Request(number, action))
        self._num_steps = result.step
        return result

    async def _toolbox_in(self, episode: str | None) -> Toolbox:
        if episode:
            return await self._authorized.toolbox(episode)
        manifest = (await self._authorized.service_of(self._run)).manifest
        domain = domain_of(manifest.domain_of(""))
        return Toolbox.of(domain, EpisodeOpening(run=self._run))

    async def _current(self) -> str | None:
        return await self._chain.current() if self._chain else self._episode

    async def _find(self, name: str) -> Episode | None:
        try:
            return await self._authorized.wait_settled(name)
        except NotFound:
            return None

    async def _check_same(self, opening: EpisodeOpening, name: str) -> None:
        """Refuses a repeated reset with other fields than the episode's opening."""
        try:
            await self._authorized.reset(opening, name)
        except Conflict as error:
            raise Conflict(
                f"episode {name} was begun with other fields; send its episode_id only"
            ) from error

    def _begin(self, result: ResetResult) -> Fields:
        self._episode, self._num_steps = result.episode, result.step
        return to_reset_answer(result)


def to_reset_answer(result: ResetResult) -> Fields:
    """The answer to a reset: the task's instruction, because the simulator has not answered yet."""
    fields = {"text": result.instruction or "", "episode": result.episode, "step": result.step}
    observation = {**fields, "simulator": result.simulator, "control": result.control}
    return {"observation": observation, "reward": None, "done": False}


def to_step_answer(result: StepResult, /, **fields: object) -> Fields:
    """A step's answer."""
    observation = {
        "text": result.observation,
        "simulator": result.simulator,
        "run": result.run,
        "episode": result.episode,
        "step": result.step,
        "truncated": result.truncated,
        "mean_logprob": result.mean_logprob,
        "agreement": result.agreement,
        "low_confidence": result.low_confidence,
        **fields,
    }
    return {"observation": observation, "reward": result.reward, "done": result.done}


def to_metadata(result: StepResult) -> Fields:
    """The names and the outcome of a step, without its observation."""
    return {name: value for name, value in result._asdict().items() if name != "observation"}


def to_frame(kind: str, data: Fields) -> str:
    """A frame as JSON; in ASCII if an observation has lone surrogates."""
    frame = {"type": kind, "data": data}
    try:
        return to_json(frame).decode()  # in a third of json's time
    except PydanticSerializationError:
        return _encode(frame)


def _to_tools_answer(tools: Iterable[Tool]) -> Fields:
    tool_fields = [tool.model_dump(mode="json") for tool in tools]
    return {"observation": {"tools": tool_fields}, "reward": None, "done": False}


def _to_call_answer(tool: object, result: StepResult) -> Fields:
    """A step's answer in the form of OpenEnv's clients for tools, which drop other fields."""
    fields = {"tool_name": tool, "result": result.observation, "error": None}
    return to_step_answer(result, **fields, metadata=to_metadata(result))


def _resume(episode: Episode) -> Fields:
    """The last answer; raises Conflict for an episode that was ended before it was done."""
    if episode.closed and not (episode.steps and episode.steps[-1].done):
        raise Conflict(f"episode {episode.id} is over ({episode.closed}); reset to begin another")
    if not episode.steps:
        return to_reset_answer(session.to_reset_result(episode))
    return to_step_answer(session.to_step_result(episode.simulator, episode.run, episode.steps[-1]))


def _opening(fields: Fields) -> EpisodeOpening:
    try:
        return EpisodeOpening.model_validate(fields)
    except ValidationError as error:
        raise InputError(first_problem(error)) from error


def _name_of(run: str, name: object) -> str | None:
    """The episode's name: a valid name itself, or a name derived from the run and the text."""
    if name is None:
        return None
    if type(name) is not str or not 0 < len(name) <= _LONGEST_NAME:
        raise InputError(f"an episode_id is a text of 1 to {_LONGEST_NAME} characters")
    if _OWN_NAME.fullmatch(name):
        return name
    text = f"{run}\n{name}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:32]
