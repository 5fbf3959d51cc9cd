"""The descendants of a process."""

from contextlib import suppress

import psutil


def processes_with(word: str, ancestor: int | None = None) -> list[psutil.Process]:
    """Descendants of a process (this one by default) with this word in their command.

    A process that ends in the meantime is left out.
    """
    matches = []
    for process in psutil.Process(ancestor).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            matches += [process] * (word in process.cmdline())
    return matches
