"""One recorded episode: the parts of its prompt, and turns of action and observation.

The schema is that of Qwen-AgentWorld, one for all domains and stages (section 2.2).
"""

from pydantic import Field

from agentworld.records.base import Record, Sparse
from agentworld.records.task import Task
from agentworld.records.tool import Tools


class PromptParts(Record):
    """The parts that make a system prompt (Qwen-AgentWorld section 3.1.2)."""

    task_description: str = ""
    action_space: str = ""
    initial_state: str = ""
    demonstrations: str = ""
    simulation_instruction: str = ""


class Span(Record):
    """A part of an observation that the harness wrote and not the world."""

    start: int = Field(ge=0)
    """Its first character."""
    end: int = Field(ge=0)
    """The character after its last."""
    what: str
    """Such as `steps left`."""


class Exchange(Record):
    """One action and what the environment showed for it."""

    action: str
    observation: str
    state: str | None = None
    """The true state after the action, for reasoning only; null where nobody recorded it."""


class Turn(Exchange):
    """An exchange as it was recorded."""

    time: Sparse[str] = ""
    """When the observation came, as the log has it."""
    spans: Sparse[tuple[Span, ...]] = ()
    num_changed: int | None = Field(None, ge=0, exclude_if=lambda number: number is None)
    """Fields of the live state that the action changed; null where nobody compared the states, as
    in episodes for training."""
    is_cut: Sparse[bool] = False
    """The log holds only the start of the observation."""


class Trajectory(Record):
    """One episode of a live environment, or one log."""

    domain: str
    source: str
    """The policy or log that made it."""
    task_id: Sparse[str] = ""
    """What several trials of one task share: all of them go to one pool."""
    licence: Sparse[str] = ""
    seed: int = 0
    held_out: bool = False
    """True where no training may see it."""
    initial_state: str = ""
    tools: Tools = ()
    """What the policy could call."""
    task: Task | None = None
    """The task that the policy pursued, if it had one."""
    turns: tuple[Turn, ...]
