"""One environment's episodes in a run; keeps each result until it is read."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from agentworld.client.gym.starts import Starts
from agentworld.client.simulator import SimulatorClient
from agentworld.errors import InputError, SimulatorError
from agentworld.records.episode import ResetResult, StepResult


class Turn(NamedTuple):
    """The return value of Gymnasium's `step`; that of a reset has no reward."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class _Response(NamedTuple):
    request: object
    turn: Turn


class EnvSlot:
    """Keeps a result until it is read.

    If the caller repeats the call (because another environment failed, or it was interrupted), the
    service is not asked again.
    """

    def __init__(self, client: SimulatorClient, run: str, starts: Starts) -> None:
        self._client = client
        self._run = run
        self._starts = starts
        self._episode: str | None = None
        """The open episode."""
        self._response: _Response | None = None

    async def reset(self, seed: int | None, options: Mapping[str, object] | None) -> None:
        """Ends the open episode, if there is one, and begins another."""
        request = seed, dict(options or {})
        if self._response is None or self._response.request != request:
            self._response = _Response(request, await self._begin(*request))

    def check(self, action: str) -> None:
        """Raises InputError if a result of another call is still unread."""
        if self._response and self._response.request != action:
            raise InputError(
                f"the result of {self._response.request!r:.80} has not been read yet; repeat that"
                " call unchanged, or reset"
            )

    async def step(self, action: str, *, autoreset: bool = False) -> None:
        """Takes an action; with `autoreset`, begins an episode if none is open."""
        if self._response is None:
            begins_episode = autoreset and self._episode is None
            turn = await (self._begin(None, {}) if begins_episode else self._take(action))
            self._response = _Response(action, turn)

    def read(self) -> Turn:
        """Returns the kept result and forgets it."""
        assert self._response
        response, self._response = self._response, None
        return response.turn

    async def leave(self) -> None:
        """Ends the open episode."""
        episode, self._episode = self._episode, None
        # If this fails, the service ends the idle episode later.
        with suppress(SimulatorError):
            if episode:
                await self._client.end(episode)

    async def _begin(self, seed: int | None, options: Mapping[str, object]) -> Turn:
        opening, turn = self._starts.next(self._run, seed, options)
        await self.leave()  # first, because a tenant's limit may allow one open episode only
        result = await self._client.begin(opening)
        self._starts.turn = turn
        self._episode = result.episode
        return _to_first_turn(result)

    async def _take(self, action: str) -> Turn:
        if self._episode is None:
            raise InputError("no episode is open; call reset first")
        result = await self._client.step(self._episode, action)
        if result.done:
            self._episode = None
        return _to_turn(result)


def _to_first_turn(result: ResetResult) -> Turn:
    """The first observation is the task's instruction, because the world has not answered yet."""
    info = {**_position(result), "control": result.control}
    return Turn(result.instruction or "", 0.0, False, False, info)


def _to_turn(result: StepResult) -> Turn:
    info = {
        **_position(result),
        "reward_known": result.reward is not None,
        "mean_logprob": _float(result.mean_logprob),
        "agreement": _float(result.agreement),
        "low_confidence": result.low_confidence,
    }
    terminated = result.done and not result.truncated
    reward = float(result.reward or 0)
    return Turn(result.observation, reward, terminated, result.truncated, info)


def _position(result: ResetResult | StepResult) -> dict[str, Any]:
    return {
        "simulator": result.simulator,
        "run": result.run,
        "episode_id": result.episode,  # RecordEpisodeStatistics adds `episode`
        "step": result.step,
    }


def _float(value: float | None) -> float | None:
    """A float: JSON may have an integer, and an array of integers would truncate later values."""
    return None if value is None else float(value)
