"""What the two forms of the OpenEnv wire, socket and HTTP, mean by reset, step and state."""

import asyncio
import hashlib
import json
import re
from collections.abc import Iterable

from pydantic import ValidationError

from agentworld.domains.tools import action_of, tools_of
from agentworld.errors import Conflict, InputError, NotFound
from agentworld.http.schemas import Request
from agentworld.records.base import first_problem
from agentworld.records.episode import Episode, EpisodeOpening, ResetResult, StepResult
from agentworld.records.tool import Tool
from agentworld.serving.entrance import Entrance
from agentworld.serving.episodes import session
from agentworld.serving.protocols.openenv_chain import Chain

Fields = dict[str, object]

_OF_A_CALL = {"type", "tool_name", "arguments", "metadata"}
_OWN_NAME = re.compile("[0-9a-f]{32}")
_LONGEST_NAME = 255
_written = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class OpenEnvSession:
    """The episode of a connection, and how many of its steps were answered.

    With a `chain`, a session that was created before: its episodes go on wherever it is named, so
    that its steps may come from several connections, and the next one is whichever it is by then.
    """

    __slots__ = ("_chain", "_entrance", "_episode", "_run", "_taken")

    def __init__(self, entrance: Entrance, run: str, chain: Chain | None = None) -> None:
        self._entrance = entrance
        self._run = run
        self._chain = chain
        self._episode: str | None = None
        self._taken = 0

    @property
    def name(self) -> str | None:
        """The session's; null where the connection is all that there is of it."""
        return self._chain.name if self._chain else None

    async def reset(self, data: Fields) -> Fields:
        """Begins an episode; with an `episode_id`, that one once, or goes on with it."""
        run, given = self._run, dict(data)
        name = _name_of(run, given.pop("episode_id", None))
        opening = _opening({**given, "run": run})
        known = await self._known(name) if name else None
        if known is None:
            new = await self._chain.following() if self._chain else name
            return self._begin(await self._entrance.reset(opening, new))
        if known.run != run:
            raise Conflict(f"episode {known.id} is another run's; begin one under another word")
        if self._chain and known.id != await self._chain.current():
            raise Conflict(
                f"episode {known.id} is not the one that goes on in this session; connect without a"
                " session_id to go on with it"
            )
        if given:
            await self._check_same(opening, known.id)
        self._episode, self._taken = known.id, len(known.steps)
        return _resumed(known)

    async def step(self, data: Fields) -> Fields:
        """Takes the next step of the episode: a text as its action, or a call of a tool.

        `{"type": "list_tools"}` is no step: it tells what may be called.
        """
        kind = data.get("type")
        if kind == "list_tools" and not data.keys() - {"type", "metadata"}:
            return _listed(await self.tools())
        episode = await self._current()
        if episode is None:
            raise InputError("no episode is open on this connection; reset first")
        if kind == "call_tool" and not data.keys() - _OF_A_CALL:
            tool = data.get("tool_name")
            return _called(tool, await self.call(tool, data.get("arguments", {}), {}))
        action = data.get("action")
        if type(action) is not str or data.keys() - {"action", "metadata"}:
            raise InputError(f"a step has a text as its action, and nothing else, not {data!r:.80}")
        return shown(await self._take(episode, action))

    async def state(self) -> Fields:
        """Which episode, and how far it is."""
        episode, taken = await self._current(), self._taken
        if self._chain and episode:
            taken = len((await self._entrance.settled(episode)).steps)
        told: Fields = {"episode_id": episode, "step_count": taken}
        simulator = await self._entrance.simulator_of(self._run)
        return {**told, "run": self._run, "simulator": simulator}

    async def tools(self) -> tuple[Tool, ...]:
        """What may be called: in the episode, or in one that begins with nothing of its own."""
        return await self._tools_in(await self._current())

    async def call(self, tool: object, arguments: object, opening: Fields) -> StepResult:
        """Takes the step that calling a tool is, in a new episode where none is open."""
        if type(tool) is not str or type(arguments) is not dict:
            raise InputError(
                f"a call has a tool's name and an object of arguments, not {tool!r:.80}"
            )
        episode = await self._current()
        tools = await self._tools_in(episode)
        self._entrance.check_allowed()  # a comparison costs, and is no step yet
        action = await asyncio.to_thread(action_of, tools, tool, arguments)
        if episode is None:
            await self.reset(opening)
            episode = self._episode
        assert episode
        return await self._take(episode, action)

    async def close(self) -> None:
        """Ends the episode."""
        if episode := await self._current():
            await self._entrance.close_episode(episode)

    async def _take(self, episode: str, action: str) -> StepResult:
        number = None if self._chain else self._taken + 1
        result = await self._entrance.step(episode, Request(number, action))
        self._taken = result.step
        return result

    async def _tools_in(self, episode: str | None) -> tuple[Tool, ...]:
        if episode:
            return await self._entrance.tools(episode)
        manifest = (await self._entrance.service_of(self._run)).manifest
        return tools_of(manifest.domains, EpisodeOpening(run=self._run))

    async def _current(self) -> str | None:
        return await self._chain.current() if self._chain else self._episode

    async def _known(self, name: str) -> Episode | None:
        try:
            return await self._entrance.settled(name)
        except NotFound:
            return None

    async def _check_same(self, opening: EpisodeOpening, name: str) -> None:
        """Begun once more, it is the same or refused."""
        try:
            await self._entrance.reset(opening, name)
        except Conflict as error:
            raise Conflict(
                f"episode {name} was begun otherwise; give its episode_id alone"
            ) from error

    def _begin(self, result: ResetResult) -> Fields:
        self._episode, self._taken = result.episode, result.step
        return begun(result)


def begun(result: ResetResult) -> Fields:
    """The world has not spoken yet: what the agent reads first is its task."""
    told = {"text": result.instruction or "", "episode": result.episode, "step": result.step}
    observation = {**told, "simulator": result.simulator, "control": result.control}
    return {"observation": observation, "reward": None, "done": False}


def shown(result: StepResult, /, **more: object) -> Fields:
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
        **more,
    }
    return {"observation": observation, "reward": result.reward, "done": result.done}


def named(result: StepResult) -> Fields:
    """What a step's answer is called and means, beside what was shown."""
    return {name: value for name, value in result._asdict().items() if name != "observation"}


def written(kind: str, data: Fields) -> str:
    """A frame, in ASCII: an observation may be no Unicode."""
    return _written({"type": kind, "data": data})


def _listed(tools: Iterable[Tool]) -> Fields:
    told = [tool.model_dump(mode="json") for tool in tools]
    return {"observation": {"tools": told}, "reward": None, "done": False}


def _called(tool: object, result: StepResult) -> Fields:
    """As a step's answer, and as OpenEnv's clients for tools read it, which drop what is beside."""
    told = {"tool_name": tool, "result": result.observation, "error": None}
    return shown(result, **told, metadata=named(result))


def _resumed(episode: Episode) -> Fields:
    """What was shown last; raises Conflict for an episode that was ended before it was done."""
    if episode.closed and not (episode.steps and episode.steps[-1].done):
        raise Conflict(f"episode {episode.id} is over ({episode.closed}); reset to begin another")
    if not episode.steps:
        return begun(session.opened(episode))
    return shown(session.answered(episode.simulator, episode.run, episode.steps[-1]))


def _opening(fields: Fields) -> EpisodeOpening:
    try:
        return EpisodeOpening.model_validate(fields)
    except ValidationError as error:
        raise InputError(first_problem(error)) from error


def _name_of(run: str, told: object) -> str | None:
    """The episode's name: one of ours, or one made from a run's own word for it."""
    if told is None:
        return None
    if type(told) is not str or not 0 < len(told) <= _LONGEST_NAME:
        raise InputError(f"an episode_id is a text of 1 to {_LONGEST_NAME} characters")
    if _OWN_NAME.fullmatch(told):
        return told
    named = f"{run}\n{told}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(named).hexdigest()[:32]
