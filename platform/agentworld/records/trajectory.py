"""One recorded episode: the parts of its prompt, and turns of action and observation.

The schema is that of Qwen-AgentWorld, one for all domains and stages (section 2.2).
"""

from pydantic import Field

from agentworld.records.base import Record, Sparse
from agentworld.records.task import Task
from agentworld.records.tool import Tools


class PromptParts(Record):
    """The parts of a system prompt (Qwen-AgentWorld section 3.1.2)."""

    task_description: str = ""
    action_space: str = ""
    initial_state: str = ""
    demonstrations: str = ""
    simulation_instruction: str = ""


class Span(Record):
    """A part of an observation that the harness wrote, not the world."""

    start: int = Field(ge=0)
    """The index of its first character."""
    end: int = Field(ge=0)
    """The index after its last character."""
    what: str
    """Its kind, such as `steps left`."""


class Exchange(Record):
    """One action and its observation."""

    action: str
    observation: str
    state: str | None = None
    """The true state after the action, for reasoning only; null if not recorded."""


class Turn(Exchange):
    """An exchange as it was recorded."""

    time: Sparse[str] = ""
    """The time of the observation in the log."""
    spans: Sparse[tuple[Span, ...]] = ()
    num_changed: int | None = Field(None, ge=0, exclude_if=lambda number: number is None)
    """The number of fields of the live state that the action changed; null if states were not
    compared, as in episodes for training.
    """
    is_cut: Sparse[bool] = False
    """The log has only the start of the observation."""


class Trajectory(Record):
    """One episode of a live environment, or one log."""

    domain: str
    source: str
    """The policy or log that it comes from."""
    task_id: Sparse[str] = ""
    """The task that several trials share: all of them go to one pool."""
    licence: Sparse[str] = ""
    seed: int = 0
    held_out: bool = False
    """Excluded from all training."""
    initial_state: str = ""
    tools: Tools = ()
    """The tools that the policy could call."""
    task: Task | None = None
    """The policy's task, if it had one."""
    turns: tuple[Turn, ...]
