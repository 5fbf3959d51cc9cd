"""What the platform declares of its own record: who moved a name, what was erased, lost, withdrawn.

Each is signed, and kept like an edge. A folder that is no run's has a dash in its name, which a
run's name has not.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, NamedTuple

from agentworld.records.alias import AliasChange
from agentworld.records.attestation import Attestation, AttestationKind
from agentworld.records.base import Digest, Name, Record, ShortText, digest_json

ALIAS_CHANGES = "alias-changes"
ERASURES = "episode-erasures"
RESTORES = "ledger-restores"
GENESIS = "ledger-genesis/genesis.dsse.json"
"""The one name of a genesis: a ledger has one."""
WHOLE_LEDGER = "whole-ledger"


class LedgerColumns(NamedTuple):
    """Where a declaration is found; empty where it is about no such thing."""

    subject: str
    simulator: str
    run: str
    at: str


class Declaration(Record):
    """One that is signed.

    `name` is of its copy; `subject_digest` is the digest that its subject goes by.
    """

    kind: ClassVar[AttestationKind]
    predicate_type: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """Of its copy in the evidence mirror."""

    @property
    @abstractmethod
    def columns(self) -> LedgerColumns:
        """Where it is found."""

    @property
    @abstractmethod
    def subject_digest(self) -> Digest:
        """What its subject goes by."""

    def _in(self, *folder: str) -> str:
        return f"{'/'.join(folder)}/{self.digest.removeprefix('sha256:')}.dsse.json"


Declare = Callable[[Declaration], Attestation]
"""Signs one; whoever keeps the attestation makes the declaration count."""


class SubjectDeclaration(Declaration):
    """Of a version or an artifact."""

    folder: ClassVar[str]
    """Where the copies are."""

    @classmethod
    def folder_of(cls, subject: str) -> str:
        """Where the copies are of what was said of a version, with others of its name, or of an
        artifact.
        """
        return f"{cls.folder}/{subject.removeprefix('sha256:').partition('@')[0]}"

    @property
    def name(self) -> str:
        return self._in(self.folder_of(self.columns.subject))


class AliasEntry(Declaration):
    """A change of an alias with its place in the alias's history."""

    kind: ClassVar[AttestationKind] = "alias"
    predicate_type: ClassVar[str] = "urn:agentworld:alias-change:v1"

    change: AliasChange
    previous: Digest | None
    """Of the entry before it; null for the first."""

    @property
    def name(self) -> str:
        return self._in(ALIAS_CHANGES, self.change.alias)

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.change.alias, self.change.simulator, "", self.change.at)

    @property
    def subject_digest(self) -> Digest:
        return self.change.simulator


class Erasure(Declaration):
    """The texts of an episode were taken away by whoever may."""

    kind: ClassVar[AttestationKind] = "erasure"
    predicate_type: ClassVar[str] = "urn:agentworld:erasure:v1"

    episode: str
    run: str
    simulator: Digest
    opening: Digest
    """Of what the episode was opened with."""
    by: Name
    at: str

    @property
    def name(self) -> str:
        return self._in(ERASURES, self.run)

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.episode, self.simulator, self.run, self.at)

    @property
    def subject_digest(self) -> Digest:
        return self.opening


class Restore(Declaration):
    """A backup was put in the ledger's place, and these copies are of what it does not have."""

    kind: ClassVar[AttestationKind] = "restore"
    predicate_type: ClassVar[str] = "urn:agentworld:restore:v1"

    run: str
    """That lost entries, and can never go on; empty for all that is no run's log."""
    lost: tuple[str, ...]
    """The names of the copies."""
    reason: ShortText
    by: Name
    at: str

    @property
    def name(self) -> str:
        return self._in(RESTORES, self.run or WHOLE_LEDGER)

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.run or WHOLE_LEDGER, "", self.run, self.at)

    @property
    def subject_digest(self) -> Digest:
        return digest_json(list(self.lost))


class Genesis(Declaration):
    """What a ledger held when its changes began to be signed: none of it was signed before."""

    kind: ClassVar[AttestationKind] = "genesis"
    predicate_type: ClassVar[str] = "urn:agentworld:ledger-genesis:v1"

    changes: tuple[AliasChange, ...]
    """Of all aliases, in their order."""
    erased: tuple[str, ...]
    """Episodes whose texts were gone."""
    at: str

    @property
    def name(self) -> str:
        return GENESIS

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(WHOLE_LEDGER, "", "", self.at)

    @property
    def subject_digest(self) -> Digest:
        return self.digest


class Withdrawal(SubjectDeclaration):
    """People took a registered version away: it is not missed any more."""

    kind: ClassVar[AttestationKind] = "withdrawal"
    predicate_type: ClassVar[str] = "urn:agentworld:withdrawal:v1"
    folder: ClassVar[str] = "withdrawn-versions"

    version: str
    """NAME@VERSION."""
    artifact: Digest
    registered: Digest
    """Of what was signed when it was registered, which does not count from now on."""
    reason: ShortText
    by: Name
    at: str

    @property
    def columns(self) -> LedgerColumns:
        return LedgerColumns(self.version, "", "", self.at)

    @property
    def subject_digest(self) -> Digest:
        return self.artifact


DECLARATIONS: dict[AttestationKind, type[Declaration]] = {
    record_type.kind: record_type
    for record_type in (AliasEntry, Erasure, Restore, Genesis, Withdrawal)
}


def alias_entries(changes: Iterable[AliasChange]) -> list[AliasEntry]:
    """Changes of any aliases with their places, each alias's in the order of its own."""
    last: dict[str, Digest] = {}
    entries = []
    for change in changes:
        entry = AliasEntry(change=change, previous=last.get(change.alias))
        last[change.alias] = entry.digest
        entries.append(entry)
    return entries
