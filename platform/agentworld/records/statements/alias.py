"""A move of an alias; it is checked against the ledger's history of that alias."""

from collections.abc import Iterable
from typing import ClassVar

from agentworld.records.alias import AliasChange, alias_kind
from agentworld.records.base import Digest
from agentworld.records.statements.base import Column, LedgerColumns, SignedRecord


class AliasEntry(SignedRecord):
    """A change of an alias with its place in the alias's history."""

    kind: ClassVar[str] = "alias"
    predicate_type: ClassVar[str] = "urn:agentworld:alias-change:v1"
    folder: ClassVar[str] = "alias-changes"
    column: ClassVar[Column] = "name"

    change: AliasChange
    previous: Digest | None
    """Of the entry before it; null for the first."""

    @classmethod
    def folder_of(cls, value: str) -> str:
        """Of an alias; `NAME@` has those of all aliases of an agent, and `@` of all agents."""
        return "/".join((cls.folder, alias_kind(value), *filter(None, value.split("@"))))

    @classmethod
    def describe_row(cls, name: str, columns: LedgerColumns) -> str:
        """By the alias in its name, which says what it took the place of, and by its moment."""
        alias = "@".join(name.split("/")[2:-1]) or columns.subject
        return f"the statement of alias {alias!r} at {columns.at}"

    def describe(self, name: str) -> str:  # noqa: ARG002 - a digest
        """By what it says."""
        return f"the statement that {self.change.text}"

    def is_of(self, value: str) -> bool:
        """Whether it is of this alias, or of this agent."""
        return self.path.startswith(f"{self.folder_of(value)}/")

    @property
    def path(self) -> str:
        """By its digest, in the folder of its alias."""
        folder = self.folder_of(self.change.alias)
        return f"{folder}/{self.digest.removeprefix('sha256:')}.dsse.json"

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.change.alias, self.change.simulator, "", self.change.at)

    @property
    def subject_digest(self) -> Digest:
        return self.change.subject


def alias_entries(changes: Iterable[AliasChange]) -> list[AliasEntry]:
    """Changes of any aliases with their places, each alias's in the order of its own."""
    last: dict[str, Digest] = {}
    entries = []
    for change in changes:
        entry = AliasEntry(change=change, previous=last.get(change.alias))
        last[change.alias] = entry.digest
        entries.append(entry)
    return entries


KIND = AliasEntry
