"""What an agent is asked in an episode, and how its transcript is judged."""

from agentworld.records.base import Record


class SuccessRule(Record):
    """The first action that matches `closing` ends the episode; its output is right or wrong.

    A rule reads actions and observations and nothing else, so that the same rule
    rewards a simulated episode and reports a live one.
    """

    closing: str
    """A regular expression over the whole action."""
    output: str
    """What the closing action must show before the prompt line."""


class Task(Record):
    """An order in words, a start, a rule of success and a turn limit."""

    id: str
    family: str
    """What kind of order it is, as its domain names it: `find`, `create`."""
    instruction: str
    initial_state: str
    """The start as the simulator's prompt tells it; the agent does not see it."""
    success: SuccessRule
    turn_limit: int
    seed: int
