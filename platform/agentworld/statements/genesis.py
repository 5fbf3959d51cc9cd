"""Binds an evidence mirror to its ledger, and records the ledger's content before signing began.

A ledger has one genesis: a signed record of its earlier content, stored in both. So the mirror
refuses another ledger, whose aliases would look like losses of the first one.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

from agentworld.errors import Conflict, EvidenceError, InputError, NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.attestations import Attestations
from agentworld.records.attestation import Attestation
from agentworld.records.base import now
from agentworld.records.statements.base import statement_kinds
from agentworld.records.statements.genesis import GENESIS, Genesis
from agentworld.signing.envelope import attest, row_of, verify_envelope, verify_row
from agentworld.signing.keys import Signer, TrustedKeys
from agentworld.storage.objects import WriteOnce


class LedgerGenesis:
    """Signs with the keys of a service. Calls block."""

    def __init__(
        self,
        ledger: Ledger,
        signer: Callable[[], Signer],
        mirror: WriteOnce,
        *,
        trusted: Callable[[], TrustedKeys],
        step_keys: Callable[[], TrustedKeys],
    ) -> None:
        self._ledger = ledger
        self._signer = signer
        self._mirror = mirror
        self._trusted = trusted
        self._step_keys = step_keys
        self._is_signed = False

    def known_keys(self) -> TrustedKeys:
        """The trusted keys and its own."""
        own = self._signer().public_key
        return {**self._trusted(), own.keyid: own}

    def ensure_genesis(self, *, restored: bool = False) -> None:
        """Signs the genesis once: all later changes must be signed.

        A ledger that was `restored` from a backup without it gets the earlier genesis. Raises
        Conflict if the evidence mirror belongs to another ledger.
        """
        if self._is_signed:
            return
        self.check_own(restored=restored)
        attestations = self._ledger.attestations
        if not attestations.find("genesis"):
            with suppress(Conflict):  # another replica was faster
                attestations.add(self._genesis())
        self._copy(attestations.find("genesis"), set())
        self.check_own(restored=restored)  # again, because another ledger may have been faster
        self._is_signed = True

    def check_own(self, *, restored: bool = False) -> None:
        """Raises Conflict if the evidence mirror belongs to another ledger."""
        if not self._is_signed:
            check_own(self._ledger.attestations, self._mirror, restored=restored)

    def _genesis(self) -> Attestation:
        """The mirror's genesis, because a restored ledger gets no new one; else a new genesis."""
        envelope = _copy_of_genesis(self._mirror)
        if envelope is None:
            changes = self._ledger.aliases.history()
            erased = self._ledger.erased_episodes()
            genesis = Genesis(changes=tuple(changes), erased=tuple(erased), at=now())
            return attest(genesis, self._signer())
        genesis = verify_envelope(envelope, Genesis, self.known_keys())
        return row_of(genesis, envelope)

    def _copy(self, attestations: Iterable[Attestation], folders: set[str]) -> list[str]:
        """Copies what these folders lack, if our keys signed it; returns the problems."""
        names = {name for folder in folders for name in self._mirror.names(f"{folder}/")}
        problems, keys, steps = [], self.known_keys(), self._step_keys()
        for attestation in attestations:
            if attestation.name in names:
                continue
            try:
                _check_own(attestation, keys, steps)
                self._mirror.put(attestation.name, attestation.envelope)
            except (EvidenceError, InputError, Conflict) as error:
                problems.append(f"{attestation.name} of the ledger is not copied: {error}")
        return problems


def check_own(attestations: Attestations, mirror: WriteOnce, *, restored: bool = False) -> None:
    """Raises Conflict if the mirror belongs to another ledger than these attestations."""
    # the mirror's copy first, because a ledger stores a statement before its copy exists
    copy = _copy_of_genesis(mirror)
    own = [attestation.envelope for attestation in attestations.find("genesis")]
    if copy is None or copy in own or (restored and not own):
        return
    raise Conflict(
        "the evidence mirror was begun with another ledger; name one of its own for this ledger,"
        " or, if a backup was put in that ledger's place, declare it with"
        " `agentworld audit restored --reason`"
    )


def _copy_of_genesis(mirror: WriteOnce) -> bytes | None:
    try:
        return mirror.get(GENESIS)
    except NotFound:
        return None


def _check_own(attestation: Attestation, keys: TrustedKeys, steps: TrustedKeys) -> None:
    """Raises EvidenceError for a record that no key of ours signed, or not under this name."""
    kind = statement_kinds().get(attestation.kind)
    if kind is None:
        raise EvidenceError(f"its kind {attestation.kind!r} is unknown; find out who added it")
    verify_row(attestation, kind, steps if kind.signer == "step" else keys)
