"""The contents of a backup."""

from typing import Annotated

from pydantic import StringConstraints

from agentworld.records.base import Digest, Record

DumpName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]+\.dump$")]
"""The name of a dump's file."""


class BackupFile(Record):
    """A file of a backup."""

    content: Digest
    """The digest of its bytes."""
    size: int
    """In bytes."""


class Backup(Record):
    """The manifest of a backup. It is written last, so a backup that has one is complete."""

    at: str
    """The start of the backup: it includes everything recorded before."""
    dumps: dict[DumpName, BackupFile]
    """Dumps of databases, by the names of their files."""
    files: BackupFile
    """The list of all other files with their digests, in the form of `sha256sum`."""
    num_texts: int
    """The number of long texts in the list."""
    num_copies: int
    """The number of copies of signed records, from the evidence mirror, in the list."""
    damaged: tuple[Digest, ...] = ()
    """Long texts that were damaged in the object store and are missing from the backup."""

    @property
    def num_dump_bytes(self) -> int:
        """The size of all dumps."""
        return sum(dump.size for dump in self.dumps.values())
