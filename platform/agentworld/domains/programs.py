"""Programs that environments need on this machine, and the packages that have them."""

import shutil
from typing import NamedTuple


class Program(NamedTuple):
    """A program of this machine."""

    name: str
    package: str
    """The Debian package that has it."""
    path: str | None = None
    """The folders in which it is looked for, in the form of PATH; null is PATH itself."""

    def find(self) -> str | None:
        """The path of its file; null if it is missing."""
        return shutil.which(self.name, path=self.path)


PYTHON = Program("python3", "python3", path="/usr/local/bin:/usr/bin")
"""A Python in one of the folders that every sandbox has."""
