"""What was declared of a whole ledger, which each of its runs is held against."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from agentworld.errors import AgentworldError, EvidenceError, NotFound
from agentworld.ledger.attestations import Attestations
from agentworld.records.attestation import Attestation
from agentworld.records.declaration import GENESIS, Genesis, Restore
from agentworld.signing.declaration import check_attested, verify_declared
from agentworld.signing.keys import TrustedKeys
from agentworld.storage.objects import WriteOnce


class Restores(NamedTuple):
    """Restores of a backup that somebody declared."""

    counted: tuple[Restore, ...] = ()
    """Not those that a later one names, which an older backup took away."""
    names: frozenset[str] = frozenset()
    """Of the copies that these call lost."""
    problems: tuple[str, ...] = ()
    """Of declarations that do not hold."""

    @classmethod
    def of(cls, rows: Sequence[Attestation], trusted: TrustedKeys) -> "Restores":
        """Those that a ledger keeps, each verified."""
        restores, problems = [], []
        for row in rows:
            try:
                restores.append(check_attested(row, Restore, trusted))
            except EvidenceError as error:
                problems.append(f"the restore {row.name} does not verify: {error}")
        lost_names = {name for restore in restores for name in restore.lost}
        counted = tuple(restore for restore in restores if restore.name not in lost_names)
        names = frozenset(name for restore in counted for name in restore.lost)
        return cls(counted, names, tuple(problems))


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
    def restores(self) -> Restores:
        """Of all that is no run's log."""
        return Restores.of(self.restores_of(""), self._trusted)

    def restores_of(self, run: str) -> Sequence[Attestation]:
        """The rows of those that a run lost entries by; nothing of them is verified."""
        return self._by_run.get(run, ())

    @cached_property
    def _by_run(self) -> dict[str, list[Attestation]]:
        by_run: dict[str, list[Attestation]] = {}
        for attestation in self._attestations.find("restore"):
            by_run.setdefault(attestation.run, []).append(attestation)
        return by_run


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

    Null where no service of today ever came. Raises EvidenceError where no trusted key signed it.
    """
    try:
        return verify_declared(read_copy(GENESIS, mirror), Genesis, trusted)
    except NotFound:
        rows = attestations.find("genesis")
    return verify_declared(rows[0].envelope, Genesis, trusted) if rows else None
