"""What the two forms of the OpenEnv wire, socket and HTTP, mean by reset, step and state."""

import hashlib
import json
import re

from pydantic import ValidationError

from agentworld.errors import Conflict, InputError, NotFound
from agentworld.records.base import first_problem
from agentworld.records.episode import Episode, EpisodeOpening, ResetResult, StepResult
from agentworld.simulate import session
from agentworld.simulate.entrance import Entrance
from agentworld.simulate.session import Request

Fields = dict[str, object]

_OWN_NAME = re.compile("[0-9a-f]{32}")
_LONGEST_NAME = 255
_written = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class OpenEnvSession:
    """The episode of a connection, and how many of its steps were answered."""

    __slots__ = ("_entrance", "_episode", "_run", "_taken")

    def __init__(self, entrance: Entrance, run: str) -> None:
        self._entrance = entrance
        self._run = run
        self._episode: str | None = None
        self._taken = 0

    async def reset(self, data: Fields) -> Fields:
        """Begins an episode; with an `episode_id`, that one once, or goes on with it."""
        run, given = self._run, dict(data)
        name = _name_of(run, given.pop("episode_id", None))
        opening = _opening({**given, "run": run})
        known = await self._known(name) if name else None
        if known is None:
            return self._begin(await self._entrance.reset(opening, name))
        if known.run != run:
            raise Conflict(f"episode {known.id} is another run's; begin one under another word")
        if given:
            await self._check_same(opening, known.id)
        self._episode, self._taken = known.id, len(known.steps)
        return _resumed(known)

    async def step(self, data: Fields) -> Fields:
        """Takes the next step of this connection's episode."""
        action = data.get("action")
        if self._episode is None:
            raise InputError("no episode is open on this connection; reset first")
        if type(action) is not str or data.keys() - {"action", "metadata"}:
            raise InputError(f"a step has a text as its action, and nothing else, not {data!r:.80}")
        result = await self._entrance.step(self._episode, Request(self._taken + 1, action))
        self._taken = result.step
        return shown(result)

    async def state(self) -> Fields:
        """Which episode, and how far it is."""
        told: Fields = {"episode_id": self._episode, "step_count": self._taken}
        simulator = await self._entrance.simulator_of(self._run)
        return {**told, "run": self._run, "simulator": simulator}

    async def _known(self, name: str) -> Episode | None:
        try:
            return await self._entrance.episode(name)
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


def shown(result: StepResult) -> Fields:
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
    }
    return {"observation": observation, "reward": result.reward, "done": result.done}


def written(kind: str, data: Fields) -> str:
    """A frame, in ASCII: an observation may be no Unicode."""
    return _written({"type": kind, "data": data})


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
