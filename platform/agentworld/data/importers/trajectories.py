"""Trajectories as this project writes them: JSON lines, in a file or in a folder of files."""

from collections.abc import Iterator
from pathlib import Path

from agentworld.data.importers.base import Importer
from agentworld.records.base import Digest
from agentworld.records.trajectory import Trajectory
from agentworld.storage.trajectories import read_trajectories, recorded


class Trajectories:
    """See `Importer`."""

    def digest(self, source: Path) -> Digest:
        """Of its manifest."""
        return recorded(source).digest

    def read(self, source: Path) -> Iterator[Trajectory]:
        """See `read_trajectories`."""
        return read_trajectories(source)


IMPORTER: Importer = Trajectories()
