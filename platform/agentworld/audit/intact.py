"""Whether a whole ledger is what was signed: every run, every edge, and what they belong to.

A problem is a sentence that names its run, edge or key. What was added since the last signature
is no problem: it is chained, and the next signature covers it.
"""

from collections.abc import Iterator
from typing import Protocol, get_args

from agentworld.audit.alias_history import alias_problems
from agentworld.audit.edges import edge_problems
from agentworld.audit.evidence import Evidence
from agentworld.audit.signed_log import RunRecord
from agentworld.audit.verify import verify_run
from agentworld.errors import EvidenceError, StoreError
from agentworld.evidence.keys import public_pem
from agentworld.ledger.aliases import Aliases
from agentworld.ledger.attestations import Attestations
from agentworld.ledger.signing_keys import SigningKeys
from agentworld.records.attestation import AttestationKind


class Kept(RunRecord, Protocol):
    """All of a ledger."""

    @property
    def aliases(self) -> Aliases:
        """People's names for simulators."""
        ...

    @property
    def signing_keys(self) -> SigningKeys:
        """Which keys a service said that it signs with."""
        ...

    def run_names(self) -> list[str]:
        """All runs by their names, also those that cannot be read."""
        ...

    def strays(self) -> list[str]:
        """A sentence for each row that belongs to nothing."""
        ...


def ledger_problems(ledger: Kept, evidence: Evidence) -> Iterator[str]:
    """What somebody changed, added or took away; nothing where the ledger is intact."""
    yield from _of_runs(ledger, evidence)
    yield from _told("the attestations", edge_problems(ledger.attestations, evidence))
    names = alias_problems(ledger.aliases, ledger.attestations, evidence)
    yield from _told("the history of names", names)
    yield from _told("the attestations", _of_kinds(ledger.attestations))
    yield from _told("the signing keys", _of_keys(ledger.signing_keys, evidence))
    yield from _told("the ledger", _of_strays(ledger))


def _of_runs(ledger: Kept, evidence: Evidence) -> Iterator[str]:
    # First the copies: a run that is opened and signed meanwhile is in the ledger before.
    signed = {name.partition("/")[0] for name in evidence.second_store.names()}
    runs = ledger.run_names()
    # A run's name is a word, and what else is signed is under names with a dash.
    for run in [*runs, *sorted(filter(str.isalnum, signed.difference(runs)))]:
        try:
            yield from (f"run {run}: {each}" for each in verify_run(run, ledger, evidence).problems)
        except EvidenceError as error:
            yield f"run {run}: {error}"


def _of_kinds(told: Attestations) -> Iterator[str]:
    for each in told.all():
        if each.kind not in get_args(AttestationKind):
            yield f"the attestation {each.name} is of an unknown kind, {each.kind!r}"


def _of_keys(told: SigningKeys, evidence: Evidence) -> Iterator[str]:
    trusted = {name: public_pem(key).decode() for name, key in evidence.trusted.items()}
    for each in told.all():
        if trusted.get(each.key) != each.public:
            yield f"the key {each.key} of the ledger is none that is trusted"


def _of_strays(ledger: Kept) -> Iterator[str]:
    yield from ledger.strays()


def _told(what: str, problems: Iterator[str]) -> Iterator[str]:
    """The problems, and as one more that somebody left what cannot even be read."""
    try:
        yield from problems
    except (ValueError, TypeError, StoreError) as error:
        if isinstance(error, StoreError) and error.retryable:
            raise
        yield f"{what} cannot be read ({type(error).__name__}); restore the ledger"
