"""One environment's place in a run: one episode after the other, and no answer gets lost."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from agentworld.client.gym.starts import Starts
from agentworld.client.simulator import SimulatorClient
from agentworld.errors import InputError, SimulatorError
from agentworld.records.episode import ResetResult, StepResult


class Turn(NamedTuple):
    """What Gymnasium's `step` returns; that of a reset is without a reward."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class _Response(NamedTuple):
    request: object
    turn: Turn


class EnvSlot:
    """An answer is kept until it is read: whoever asks the same again meanwhile (another
    environment's answer is missing, or the caller was interrupted) does not ask the service.
    """

    def __init__(self, client: SimulatorClient, run: str, starts: Starts) -> None:
        self._client = client
        self._run = run
        self._starts = starts
        self._episode: str | None = None
        """The one that is open."""
        self._response: _Response | None = None

    async def reset(self, seed: int | None, options: Mapping[str, object] | None) -> None:
        """Ends the episode before, if it is still open, and begins one."""
        request = seed, dict(options or {})
        if self._response is None or self._response.request != request:
            self._response = _Response(request, await self._begin(*request))

    def check(self, action: str) -> None:
        """Raises InputError where the answer to something else is still to be read."""
        if self._response and self._response.request != action:
            raise InputError(
                f"the answer to {self._response.request!r:.80} is here and was not read yet; repeat"
                " that call as it was, or reset"
            )

    async def step(self, action: str, *, autoreset: bool = False) -> None:
        """Takes an action; with `autoreset`, an episode begins where none is open."""
        if self._response is None:
            begins_episode = autoreset and self._episode is None
            turn = await (self._begin(None, {}) if begins_episode else self._take(action))
            self._response = _Response(action, turn)

    def read(self) -> Turn:
        """The answer that is kept, once."""
        assert self._response
        response, self._response = self._response, None
        return response.turn

    async def leave(self) -> None:
        """Ends the episode that is open."""
        episode, self._episode = self._episode, None
        # One that cannot be ended now stands still, and the service ends it in its time.
        with suppress(SimulatorError):
            if episode:
                await self._client.end(episode)

    async def _begin(self, seed: int | None, options: Mapping[str, object]) -> Turn:
        opening, turn = self._starts.next(self._run, seed, options)
        await self.leave()  # first: a tenant may have no more than this one open
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
    """The world has not spoken yet: what the agent reads first is its task."""
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
        "episode_id": result.episode,  # `episode` is what RecordEpisodeStatistics adds
        "step": result.step,
    }


def _float(value: float | None) -> float | None:
    """JSON may tell a whole number, and an array of those would cut what comes after it."""
    return None if value is None else float(value)
