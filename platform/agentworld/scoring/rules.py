"""The rule verifier of the terminal: right in all that the next command can depend on.

The prompt line, exit status and folder, must be the true one. Of the output, spaces at the
end of a line are forgiven. Of an error message the program's name and the words before the
named file are forgiven; the file and the reason after the last `: ` are not.
"""

from agentworld.domains.terminal.grammar import Screen, read_screen


def verify(predicted: str, truth: str) -> bool | None:
    """Right or wrong; null where the true observation ends without a prompt line.

    Then there was no shell to end it, and the rule has nothing to say.
    """
    true = read_screen(truth.strip("\n"))
    if not true.prompt:
        return None
    guessed = read_screen(predicted.strip("\n"))
    return guessed.prompt == true.prompt and _essence(guessed) == _essence(true)


def _essence(screen: Screen) -> list[tuple[str, ...]]:
    """What of each line must be right."""
    failed = screen.status != 0
    return [_essence_of(line.rstrip(), is_error=failed) for line in screen.lines]


def _essence_of(line: str, *, is_error: bool) -> tuple[str, ...]:
    before, colon, reason = line.rpartition(": ")
    if not (is_error and colon):
        return (line,)
    name = before.split(" ")[-1].strip("'\"")
    return (name, reason)
