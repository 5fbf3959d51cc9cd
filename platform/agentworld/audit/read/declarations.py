"""What was declared of a whole ledger, which each of its runs is held against."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from agentworld.errors import AgentworldError, EvidenceError, NotFound
from agentworld.ledger.attestations import Attestations
from agentworld.records.attestation import Attestation
from agentworld.records.statements.genesis import GENESIS, Genesis
from agentworld.records.statements.restore import Restore
from agentworld.signing.attestation import verify_envelope, verify_row
from agentworld.signing.keys import TrustedKeys
from agentworld.storage.objects import WriteOnce


class Losses(NamedTuple):
    """What was declared to be lost by the restore of a backup."""

    names: frozenset[str] = frozenset()
    """Of copies in the evidence mirror that the ledger need not know."""
    notes: tuple[str, ...] = ()
    """What was declared of a run, for people."""
    problems: tuple[str, ...] = ()
    """Of declarations that do not hold."""


class DeclarationReader:
    """Read and verified when it is asked for, and once: for one audit, which keeps it no longer."""

    def __init__(self, attestations: Attestations, mirror: WriteOnce, trusted: TrustedKeys) -> None:
        self._attestations = attestations
        self._mirror = mirror
        self._trusted = trusted

    @cached_property
    def erased(self) -> frozenset[str] | None:
        """Episodes that were erased before anybody declared it; null where nobody signs any.

        Raises EvidenceError where no trusted key signed it.
        """
        genesis = genesis_of(self._attestations, self._mirror, self._trusted)
        return None if genesis is None else frozenset(genesis.erased)

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """Of restores of all that is no run's log."""
        return self._read([row for row in self._rows if not row.run]).problems

    @cached_property
    def lost(self) -> frozenset[str]:
        """Every name that a declaration counts as lost."""
        return self._read(self._rows).names

    def _read(self, rows: Sequence[Attestation]) -> Losses:
        """What restores name, without those that a later one names: an older backup took these."""
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
    """A copy; one that cannot be read has no bytes and verifies for nobody. Raises NotFound."""
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
    """What the ledger held unsigned: as the evidence mirror has it, else the ledger.

    Null where no service ever came. Raises EvidenceError where no trusted key signed it.
    """
    try:
        return verify_envelope(read_copy(GENESIS, mirror), Genesis, trusted)
    except NotFound:
        rows = attestations.find("genesis")
    return verify_envelope(rows[0].envelope, Genesis, trusted) if rows else None
