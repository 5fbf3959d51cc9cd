"""The thought of a world model before its answer, made from the recorded true state.

It has only the files that the command names: the whole state doubled the tokens and taught less.
"""

from agentworld.domains.start_files import describe_files, parse_files


def recorded_thought(state: str, action: str) -> str:
    """The files that the action names, in the state before it; `none` if it names none."""
    words = action.split()
    files = {
        path: text
        for path, text in parse_files(state).items()
        if any(word in (path, path.rpartition("/")[2]) or word == "*" for word in words)
    }
    return describe_files(files) if files else "none"
