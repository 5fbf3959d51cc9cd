"""What a world thinks before it answers, read off the recorded true state.

Only what the command touches: a whole dump of the state doubled the tokens and taught less.
"""

from agentworld.domains.start_files import describe_files, parse_files


def recorded_thought(state: str, action: str) -> str:
    """The files that the action names, as they were in the state before it; `none` without any."""
    words = action.split()
    files = {
        path: text
        for path, text in parse_files(state).items()
        if any(word in (path, path.rpartition("/")[2]) or word == "*" for word in words)
    }
    return describe_files(files) if files else "none"
