"""One recorded episode: the parts of its prompt, and turns of action and observation.

The schema is that of Qwen-AgentWorld, one for all domains and stages (section 2.2).
"""

from agentworld.records.base import Record
from agentworld.records.task import Task


class PromptParts(Record):
    """The parts that make a system prompt (Qwen-AgentWorld section 3.1.2)."""

    task_description: str = ""
    action_space: str = ""
    initial_state: str = ""
    demonstrations: str = ""
    simulation_instruction: str = ""


class Turn(Record):
    """One action and what the environment showed for it."""

    action: str
    observation: str
    state: str = ""
    """The true state after the action, where the collector recorded it; for reasoning only."""


class Trajectory(Record):
    """One episode of a live environment, or one log."""

    domain: str
    source: str
    """The policy or log that made it."""
    seed: int
    held_out: bool = False
    """True where the episode used words that no training episode may use."""
    initial_state: str = ""
    task: Task | None = None
    """The task that the policy pursued, if it had one."""
    turns: tuple[Turn, ...]
