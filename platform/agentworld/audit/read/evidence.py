"""The evidence for a run's record besides its ledger: keys and the evidence mirror.

A question about a past time is cut by one rule, `as_of`: a version has the registry's time, a run
that of its log, a statement its signed time.

A checkpoint is copied to the evidence mirror before the ledger stores it. A service that was killed
in between leaves only a copy, which is equally valid; a checkpoint without a copy means that one
was deleted or forged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Literal, NamedTuple, TypeVar

from agentworld.errors import AgentworldError, EvidenceError, NotFound
from agentworld.ledger.attestations import Attestations
from agentworld.records.attestation import Attestation
from agentworld.records.base import Record, Sentence
from agentworld.records.garbled import reading
from agentworld.records.run import AgentRun
from agentworld.records.statements.base import SignedRecord
from agentworld.records.statements.edge import Grade
from agentworld.records.statements.genesis import GENESIS, Genesis
from agentworld.records.statements.restore import Restore
from agentworld.signing.checkpoint import RunCheckpoint, checkpoint_name, verify_checkpoint
from agentworld.signing.envelope import key_of, verify_envelope, verify_row
from agentworld.signing.keys import TrustedKeys
from agentworld.storage.objects import WriteOnce

_Item = TypeVar("_Item")

EvidenceState = Literal["verified", "unsigned", "broken"]
"""How far a record can be relied on:

    verified  all of it is signed, and there as it was signed
    unsigned  its end is chained and not signed yet
    broken    it is not what was signed
"""


class Finding(Record):
    """An audit's finding about one subject."""

    subject: Sentence
    """A run, an episode, a version, an agent, the ledger."""
    grade: EvidenceState | Grade
    problems: tuple[Sentence, ...] = ()
    """Contradictions and differences from what was signed; empty for an intact record."""
    notes: tuple[Sentence, ...] = ()
    """Missing or declared records without a contradiction."""

    @property
    def qualified_problems(self) -> tuple[str, ...]:
        """Each problem with its subject."""
        return tuple(
            problem if f"{self.subject} " in problem else f"{self.subject}: {problem}"
            for problem in self.problems
        )


class Losses(NamedTuple):
    """Losses that the restore of a backup declared."""

    names: frozenset[str] = frozenset()
    """Names of copies in the evidence mirror that the ledger may lack."""
    notes: tuple[str, ...] = ()
    """Declared losses of a run, as text."""
    problems: tuple[str, ...] = ()
    """Invalid declarations."""


class DeclarationReader:
    """Declarations, read and verified lazily and once, for one audit."""

    def __init__(self, attestations: Attestations, mirror: WriteOnce, trusted: TrustedKeys) -> None:
        self._attestations = attestations
        self._mirror = mirror
        self._trusted = trusted

    @cached_property
    def erased(self) -> frozenset[str] | None:
        """Episodes that were erased before erasures were declared; null if erasures are not signed.

        Raises EvidenceError if no trusted key signed it.
        """
        genesis = genesis_of(self._attestations, self._mirror, self._trusted)
        return None if genesis is None else frozenset(genesis.erased)

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """Problems of restore declarations that are not about a run's log."""
        return self._read([row for row in self._rows if not row.run]).problems

    @cached_property
    def lost(self) -> frozenset[str]:
        """Every name that a declaration counts as lost."""
        return self._read(self._rows).names

    def _read(self, rows: Sequence[Attestation]) -> Losses:
        """Restores, without those that a later one names: an older backup lost these."""
        restores, problems = [], []
        for row in rows:
            try:
                restores.append(verify_row(row, Restore, self._trusted))
            except EvidenceError as error:
                problems.append(f"the restore {row.name} does not verify: {error}")
        lost_names = {name for restore in restores for name in restore.lost}
        counted = [restore.lost for restore in restores if restore.path not in lost_names]
        return Losses(frozenset().union(*counted), problems=tuple(problems))

    @cached_property
    def _rows(self) -> list[Attestation]:
        return self._attestations.find(Restore.kind)


def read_copy(name: str, mirror: WriteOnce) -> bytes:
    """Reads a copy; an unreadable one has no bytes and never verifies. Raises NotFound."""
    try:
        return mirror.get(name)
    except NotFound:
        raise
    except AgentworldError as error:
        if error.retryable:
            raise
        return b""


def genesis_of(
    attestations: Attestations, mirror: WriteOnce, trusted: TrustedKeys
) -> Genesis | None:
    """The genesis statement from the evidence mirror, or else from the ledger.

    Null if no service has signed one. Raises EvidenceError if no trusted key signed it.
    """
    try:
        return verify_envelope(read_copy(GENESIS, mirror), Genesis, trusted)
    except NotFound:
        rows = attestations.find("genesis")
    return verify_envelope(rows[0].envelope, Genesis, trusted) if rows else None


class Signature(Record):
    """The key and the time of a signature."""

    key: str
    """The key's id."""
    signed_at: str
    """The time in the signed statement."""
    ledger_at: str
    """The time in the ledger's row."""

    @classmethod
    def of(cls, row: Attestation, record: SignedRecord) -> "Signature":
        """The signature of a row and its record."""
        return cls(key=key_of(row.envelope), signed_at=record.columns.at, ledger_at=row.at)


class Evidence(NamedTuple):
    """The trusted keys of a verification."""

    trusted: TrustedKeys
    """The simulators' keys, which sign logs."""
    mirror: WriteOnce
    step_keys: TrustedKeys | None = None
    """The step keys, which sign weights; null trusts none."""
    at: datetime | None = None
    """The time asked about; null is now. Statements signed later are left out."""
    cache: DeclarationReader | None = None
    """Declarations about the whole ledger, for an audit of many runs; null reads them for each."""

    def keys_of(self, kind: type[SignedRecord]) -> TrustedKeys:
        """The keys that sign statements of a kind."""
        return self.trusted if kind.signer == "service" else self.step_keys or {}

    def read_declarations(self, attestations: Attestations) -> DeclarationReader:
        """The declarations about the whole ledger."""
        return self.cache or DeclarationReader(attestations, self.mirror, self.trusted)

    @property
    def of_now(self) -> "Evidence":
        """The same evidence as of now: later declarations explain a record, which is read in its
        present state.
        """
        return self._replace(at=None)

    def for_many(self, attestations: Attestations) -> "Evidence":
        """The same evidence with a cache for one audit of many runs."""
        return self._replace(cache=self.read_declarations(attestations))


def as_of(
    items: Iterable[_Item],
    at: datetime | None,
    time_of: Callable[[_Item], object] = attrgetter("at"),
) -> list[_Item]:
    """The items that existed at a time; null is now.

    Items without a readable time count as existing; verification reports them.
    """
    return [item for item in items if at is None or _was_there(item, at, time_of)]


def _was_there(item: _Item, at: datetime, time_of: Callable[[_Item], object]) -> bool:
    try:
        with reading("a time"):
            return datetime.fromisoformat(str(time_of(item))) <= at
    except (EvidenceError, NotFound):
        return True


def check_checkpoints(
    run: AgentRun, in_ledger: Mapping[int, bytes], copies: Mapping[str, bytes], trusted: TrustedKeys
) -> tuple[list[RunCheckpoint], list[str]]:
    """A run's valid checkpoints, the shortest first, and problems of the others.

    Rows of the ledger are by length, copies by name.
    """
    lengths = [length for length in in_ledger if isinstance(length, int)]
    names = {checkpoint_name(run.id, length): length for length in lengths}
    problems = [
        f"the checkpoint of length {length} has no copy in the evidence mirror"
        for name, length in names.items()
        if name not in copies
    ]
    for length in in_ledger.keys() - set(lengths):
        problems.append(f"a checkpoint's length is {length!r}, which is not a number; remove it")
    stored = [(name, in_ledger[length]) for name, length in names.items()]
    valid: list[RunCheckpoint] = []
    for name, envelope in dict.fromkeys([*stored, *copies.items()]):
        try:
            valid.append(_verify(name, envelope, run, trusted))
        except EvidenceError as error:
            problems.append(f"the checkpoint {name} does not verify: {error}")
    return sorted(valid, key=lambda checkpoint: checkpoint.length), problems


def state_of(problems: Sequence[str], *, signed: bool) -> EvidenceState:
    """The state of a record, from its problems and whether its end is signed."""
    if problems:
        return "broken"
    return "verified" if signed else "unsigned"


def copies_of(folder: str, mirror: WriteOnce) -> dict[str, bytes]:
    """The copies in a folder by their names."""
    return {name: read_copy(name, mirror) for name in mirror.names(f"{folder}/")}


def _verify(name: str, envelope: bytes, run: AgentRun, trusted: TrustedKeys) -> RunCheckpoint:
    checkpoint = verify_checkpoint(envelope, trusted)
    if checkpoint_name(checkpoint.run, checkpoint.length) != name:
        raise EvidenceError(
            f"it was signed for {checkpoint.length} entries of run {checkpoint.run}; find out who"
            " moved it"
        )
    if checkpoint.simulator != run.simulator:
        raise EvidenceError(
            f"it was signed for {checkpoint.simulator}, but the run names {run.simulator}"
        )
    return checkpoint
