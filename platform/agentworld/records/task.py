"""An agent's task in an episode, and its rule of success."""

from agentworld.records.base import Record, Sparse


class SuccessRule(Record):
    """The first action that matches `closing` ends the episode; its output decides success.

    A rule only reads actions and observations, so that the same rule rewards a simulated episode
    and scores a live one.
    """

    closing: str
    """A regular expression of at most 4,096 characters for the whole action."""
    output: str
    """The output that the closing action must have; its domain defines which part of an observation
    that is.
    """
    state: Sparse[str] = ""
    """The environment's state that means success; empty if only the transcript decides."""


class Task(Record):
    """An instruction, a start, a rule of success and a turn limit."""

    domain: str = ""
    """Its domain; empty means the simulator's only one."""
    id: str
    """The task's id in the ledger and in an agent's log."""
    family: str
    """The task's kind, as its domain names it: `find`, `create`."""
    instruction: str
    initial_state: str
    """The initial state for the simulator's prompt; the agent does not see it."""
    success: SuccessRule
    turn_limit: int
    seed: int
    """The seed that generated it; also the default seed of its episodes in a simulator whose seed
    policy is `seeded`. Other simulators ignore it.
    """
