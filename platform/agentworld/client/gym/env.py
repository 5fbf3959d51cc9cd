"""A Gymnasium environment that plays one episode after another."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from agentworld.client.gym.env_slot import EnvSlot
from agentworld.client.gym.starts import Start, Starts
from agentworld.client.gym.text import UnicodeText
from agentworld.client.gym.waiting import Simulator, WaitingRun, client_of, hide_credential
from agentworld.records.run import RunOpening


class SimulatorEnv(gymnasium.Env[str, str]):
    """One run with a simulator. Each returned value is the simulator's; every failure is raised.

    `simulator` is the service's address, or a client that only this environment uses, with its
    own settings: the expected digest, the agent's log, retries. `run` is the id of an open run,
    or the opening of a new one. `start` is a task, or a dict with fields of an EpisodeOpening, or
    several of these, which are used in turn.

    `reset` accepts a seed if the simulator supports seeds, and raises SimulatorError otherwise;
    with several starts, the seed selects the next one. Its options are the fields that `start`
    may have, for one episode.

    Gymnasium requires a number as the reward. If the simulator has none, the reward is 0.0 and
    `info["reward_known"]` is false. If `info["low_confidence"]` is true, mask the step. A failed
    step raises SimulatorError and may be repeated: the service takes it once.
    """

    def __init__(
        self,
        simulator: Simulator,
        run: str | RunOpening,
        start: Start | Sequence[Start] | None = None,
    ) -> None:
        starts = Starts(start)
        client = client_of(simulator)
        self._waiting = WaitingRun(client, run)
        self.run = self._waiting.run
        self._slot = EnvSlot(client, self.run.id, starts)
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()
        self.spec = EnvSpec(
            "agentworld/Simulator-v1",
            entry_point="agentworld.client.gym:SimulatorEnv",
            # An `info` names its episode, so two runs with one seed never have equal outputs.
            nondeterministic=True,
            kwargs={"simulator": hide_credential(simulator), "run": self.run.id, "start": start},
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begins an episode; the first observation is the task's instruction, or empty."""
        super().reset(seed=seed)
        self._waiting.ask(partial(self._slot.reset, seed, options))
        turn = self._slot.read()
        return turn.observation, turn.info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Takes an action; `truncated` means that the turn limit ended the episode."""
        self._slot.check(action)
        self._waiting.ask(partial(self._slot.step, action))
        return self._slot.read()

    def close(self) -> None:
        """Ends the episode that is open; the run stays open."""
        self._waiting.close(self._slot.leave)
