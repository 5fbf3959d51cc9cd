"""What a world thinks before it answers, read off the recorded true state.

Only what the command touches: a whole dump of the state doubled the tokens and taught less.
"""

from collections.abc import Sequence

from agentworld.domains.terminal.start import describe_files, parse_files
from agentworld.records.trajectory import Turn


def recorded_thought(initial_state: str, turns: Sequence[Turn], target: int) -> str:
    """The files that the target's action names, as they were before it; `none` without any."""
    before = turns[target - 1].state if target else initial_state
    words = turns[target].action.split()
    named = {
        path: text
        for path, text in parse_files(before).items()
        if any(word in (path, path.rpartition("/")[2]) or word == "*" for word in words)
    }
    return describe_files(named) if named else "none"
