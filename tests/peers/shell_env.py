"""A run of the simulator as an environment of TRL's GRPOTrainer."""

from openenv.core import GenericEnvClient


class ShellEnv:
    """One rollout after the other, each an episode of the run."""

    def __init__(self, run_url: str) -> None:
        # Longer than the service's AGENTWORLD_ANSWER_SECONDS, even if that is raised for an engine.
        self._world = GenericEnvClient(base_url=run_url, message_timeout_s=300.0).sync()

    def reset(self, task: dict, **_columns: object) -> str:
        """Begins an episode; what it returns is added to the prompt."""
        self._reward, self._done, self._is_hole = 0.0, False, False
        return self._world.reset(task=task).observation["text"]

    def bash(self, command: str) -> str:
        """Runs a command in the shell.

        Args:
            command: The command line.

        Returns:
            What the terminal shows.
        """
        if self._done:
            raise ValueError("the episode is over")
        try:
            result = self._world.step({"action": command})
        except Exception:
            self._is_hole = True
            self._world.disconnect()  # a late answer must not be taken for the next step's
            raise
        self._done = result.done
        self._reward = result.reward or 0.0
        self._is_hole |= result.observation["low_confidence"]
        return result.observation["text"]

    def get_reward(self) -> float | None:
        """Of the rollout; None, which takes it out of the loss, where the world failed it."""
        return None if self._is_hole else self._reward
