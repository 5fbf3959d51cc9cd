"""One recorded episode: the parts of its prompt, and turns of action and observation.

The schema is that of Qwen-AgentWorld, one for all domains and stages (section 2.2).
"""

from agentworld.records.base import Record
from agentworld.records.task import Task
from agentworld.records.tool import Tools


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
    state: str | None = None
    """The true state after the action, for reasoning only; null where nobody recorded it."""


class Trajectory(Record):
    """One episode of a live environment, or one log."""

    domain: str
    source: str
    """The policy or log that made it."""
    seed: int = 0
    held_out: bool = False
    """True where no training may see it."""
    initial_state: str = ""
    tools: Tools = ()
    """What the policy could call."""
    task: Task | None = None
    """The task that the policy pursued, if it had one."""
    turns: tuple[Turn, ...]
