"""What an agent is asked in an episode, and how its transcript is judged."""

from agentworld.records.base import Record, Sparse


class SuccessRule(Record):
    """The first action that matches `closing` ends the episode; its output is right or wrong.

    A rule reads actions and observations and nothing else, so that the same rule
    rewards a simulated episode and reports a live one.
    """

    closing: str
    """A regular expression over the whole action."""
    output: str
    """What the closing action must show; which part of an observation that is, its domain says."""
    state: Sparse[str] = ""
    """The environment's state that shows success; empty where only the transcript shows it."""


class Task(Record):
    """An order in words, a start, a rule of success and a turn limit."""

    domain: str = ""
    """The kind of world that it is for; empty is the only one that its simulator has."""
    id: str
    """Names the task, in the ledger and in an agent's log."""
    family: str
    """What kind of order it is, as its domain names it: `find`, `create`."""
    instruction: str
    initial_state: str
    """The start as the simulator's prompt tells it; the agent does not see it."""
    success: SuccessRule
    turn_limit: int
    seed: int
    """What it was drawn with; also its episodes' seed, unless their opening gives another, in a
    simulator whose seed policy is `seeded`. Any other passes over it.
    """
