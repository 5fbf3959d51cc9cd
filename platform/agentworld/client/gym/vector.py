"""Many concurrent episodes over one client, by Gymnasium's rules for vector environments."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from agentworld.client.gym.env_slot import EnvSlot, Turn
from agentworld.client.gym.outcomes import Work, all_of, failure_of
from agentworld.client.gym.starts import Start, Starts
from agentworld.client.gym.text import UnicodeText
from agentworld.client.gym.waiting import Simulator, WaitingRun, client_of
from agentworld.errors import InputError
from agentworld.records.run import RunOpening

_Texts = tuple[str, ...]
_Array = NDArray[Any]


class SimulatorVectorEnv(VectorEnv[_Texts, Sequence[str], _Array]):
    """`num_envs` episodes of one run; the step after an episode's last one begins another.

    The arguments are those of SimulatorEnv. With several starts, environment i gets the i-th one
    first and then every `num_envs`-th after it. A seed of `reset` is that of the first environment,
    and the following ones get the following seeds; a list has one for each. A value that an
    environment does not have (`mean_logprob`, `agreement`) is masked in `infos`, as Gymnasium does
    it: `infos["_agreement"]`.

    If some environments fail, `step` waits for all, and then raises a SimulatorError that names
    them. The results of the others are kept: repeating the step sends requests only for those that
    failed. Another step is refused if it would lose a result. A reset is repeated in the same way.
    If a step can never be answered (an episode is too long for the simulator),
    `reset(options={"reset_mask": env.unanswered})` begins a new episode there, and the next step
    takes its first action and returns the kept results of the others.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        simulator: Simulator,
        run: str | RunOpening,
        start: Start | Sequence[Start] | None = None,
        *,
        num_envs: int,
    ) -> None:
        if num_envs < 1:
            raise InputError(f"there are no {num_envs} environments; give 1 or more")
        starts = [Starts(start, turn=index, stride=num_envs) for index in range(num_envs)]
        client = client_of(simulator, concurrency=num_envs)
        self._waiting = WaitingRun(client, run)
        self.run = self._waiting.run
        self._slots = [EnvSlot(client, self.run.id, start) for start in starts]
        self._observations = [""] * num_envs
        self._has_episodes = False
        self.num_envs = num_envs
        self.unanswered: _Array = np.full(num_envs, fill_value=False)
        """A mask of the environments whose last call failed."""
        self.single_observation_space = UnicodeText()
        self.single_action_space = UnicodeText()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[_Texts, dict[str, Any]]:
        """Begins an episode in every environment, or in those whose `reset_mask` is true."""
        seeds = _seeds(seed, self.num_envs)
        start_options = dict(options or {})
        mask = _mask(start_options.pop("reset_mask", None), self.num_envs)
        super().reset(seed=seed if isinstance(seed, int) else None)
        self._has_episodes = self._has_episodes and not mask.all()
        indices = [index for index in range(self.num_envs) if mask[index]]
        resets = {
            index: partial(self._slots[index].reset, seeds[index], start_options)
            for index in indices
        }
        self._ask("reset", resets)
        self._has_episodes = self._has_episodes or bool(mask.all())
        infos = self._read(indices)[-1]
        return tuple(self._observations), infos

    def step(self, actions: Sequence[str]) -> tuple[_Texts, _Array, _Array, _Array, dict[str, Any]]:
        """Takes an action in every environment whose episode has not ended."""
        if not self._has_episodes:
            raise InputError("not every environment has an episode; call reset first")
        if len(actions) != self.num_envs:
            raise InputError(
                f"{self.num_envs} environments take as many actions, not {len(actions)}"
            )
        for slot, action in zip(self._slots, actions, strict=True):
            slot.check(action)
        steps = [
            partial(slot.step, action, autoreset=True)
            for slot, action in zip(self._slots, actions, strict=True)
        ]
        self._ask("step", dict(enumerate(steps)))
        turns, infos = self._read(range(self.num_envs))
        return (
            tuple(self._observations),
            np.array([turn.reward for turn in turns], dtype=np.float64),
            np.array([turn.terminated for turn in turns], dtype=np.bool_),
            np.array([turn.truncated for turn in turns], dtype=np.bool_),
            infos,
        )

    def close_extras(self) -> None:
        """Ends the open episodes; the run stays open."""
        self._waiting.close(self._leave)

    async def _leave(self) -> None:
        for error in await all_of([slot.leave for slot in self._slots]):
            if error:
                raise error

    def _ask(self, call: str, works: Mapping[int, Work]) -> None:
        outcomes = self._waiting.ask(partial(all_of, works.values()))
        failed = {index: error for index, error in zip(works, outcomes, strict=True) if error}
        self.unanswered = np.isin(np.arange(self.num_envs), list(failed))
        if failed:
            raise failure_of(call, failed, self.num_envs)

    def _read(self, indices: Iterable[int]) -> tuple[list[Turn], dict[str, Any]]:
        turns: list[Turn] = []
        infos: dict[str, Any] = {}
        for index in indices:
            turns.append(turn := self._slots[index].read())
            self._observations[index] = turn.observation
            info = {name: value for name, value in turn.info.items() if value is not None}
            infos = self._add_info(infos, info, index)
        return turns, infos


def _seeds(seed: int | Sequence[int | None] | None, num_envs: int) -> Sequence[int | None]:
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, int):
        return range(seed, seed + num_envs)
    if len(seed) != num_envs:
        raise InputError(f"{num_envs} environments take as many seeds, not {len(seed)}")
    return [None if value is None else operator.index(value) for value in seed]


def _mask(mask: object, num_envs: int) -> _Array:
    if mask is None:
        return np.full(num_envs, fill_value=True)
    array = np.asarray(mask)
    if array.shape != (num_envs,) or array.dtype != np.bool_ or not array.any():
        raise InputError(f"a reset_mask is {num_envs} booleans, one of them true, not {mask!r:.80}")
    return array
