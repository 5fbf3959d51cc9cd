"""What an importer offers, and which there are.

An importer of another package is an entry point of the group `agentworld.importers`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from agentworld.kinds import Kinds
from agentworld.records.base import Digest
from agentworld.records.trajectory import Trajectory


class Importer(Protocol):
    """Reads one form of log."""

    def digest(self, source: Path) -> Digest:
        """Of the content of a file, or of a folder's files; raises InputError for neither."""

    def read(self, source: Path) -> Iterator[Trajectory]:
        """One trajectory after another; raises InputError naming what cannot be read."""


_KINDS = Kinds[Importer](
    group="agentworld.importers",
    what="importer",
    attribute="IMPORTER",
    modules={"trajectories": "agentworld.data.importers.trajectories"},
)


def importer_of(name: str) -> Importer:
    """The importer of a form; raises InputError where there is none."""
    return _KINDS.find(name)
