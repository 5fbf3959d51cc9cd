"""Whether a whole ledger is what was signed: every run, every edge, every name.

A problem is a sentence that names its run, edge, alias or key. What was added since the last
signature is no problem: it is chained, and the next signature covers it.
"""

from collections.abc import Collection, Container, Iterator
from datetime import datetime
from typing import NamedTuple, get_args

from agentworld.audit.checks.alias_history import alias_problems
from agentworld.audit.checks.edges import edge_problems
from agentworld.audit.checks.losses import reappearance_problems
from agentworld.audit.checks.orphans import orphan_problems
from agentworld.audit.checks.reports import report_problems
from agentworld.audit.checks.run import RunVerification, infrequent_gc, verify_any
from agentworld.audit.checks.statements import statement_problems
from agentworld.audit.read.at_time import runs_as_of
from agentworld.audit.read.evidence import Evidence
from agentworld.errors import EvidenceError, NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.attestations import Attestations
from agentworld.ledger.signing_keys import SigningKeys
from agentworld.records.attestation import AttestationKind
from agentworld.records.declaration import DECLARATIONS, Withdrawal
from agentworld.records.garbled import readable
from agentworld.records.progress import OnProgress, ignore_progress
from agentworld.records.step_statement import STEP_STATEMENTS
from agentworld.signing.declaration import check_attested
from agentworld.signing.keys import public_pem


class LedgerVerification(NamedTuple):
    """The answer to: is this ledger what was signed?"""

    runs: dict[str, RunVerification]
    """By their names, also of those that only the evidence mirror has."""
    other_problems: tuple[str, ...]
    """Problems of all that is no run's record."""

    @property
    def problems(self) -> tuple[str, ...]:
        """What somebody changed, added or took away; none where the ledger is intact."""
        of_runs = (problem for run in self.runs.values() for problem in run.qualified_problems)
        return (*of_runs, *self.other_problems)


def verify_ledger(
    ledger: Ledger,
    evidence: Evidence,
    on_progress: OnProgress = ignore_progress,
    at: datetime | None = None,
) -> LedgerVerification:
    """Checks all of a ledger, also while it is written.

    Of a moment, the runs that were open by then, as they are now, and what was signed by then.
    """
    with infrequent_gc():
        runs = _runs(ledger, evidence.for_many(ledger.attestations), on_progress, at)
    return LedgerVerification(runs, tuple(_other_problems(ledger, runs, evidence, at)))


def _runs(
    ledger: Ledger, evidence: Evidence, on_progress: OnProgress, at: datetime | None
) -> dict[str, RunVerification]:
    # First the copies: a run that is opened and signed meanwhile is in the ledger before.
    signed = {name.partition("/")[0] for name in evidence.mirror.names()}
    # A run's name is a word, and what else is signed is under names with a dash.
    run_names = ledger.run_names()
    missing = sorted(filter(str.isalnum, signed.difference(run_names)))
    names = [*runs_as_of(run_names, ledger.logs, at), *missing]
    verifications = {}
    for done, name in enumerate(names, 1):
        try:
            verifications[name] = verify_any(name, ledger, evidence)
        except NotFound:  # it was declared to be lost, or is listed by what is no name of a run
            if name in run_names:
                verifications[name] = RunVerification.of_garbled(
                    name, "its name is garbled; restore it"
                )
        on_progress(done, len(names))
    return verifications


def _other_problems(
    ledger: Ledger, runs: Collection[str], evidence: Evidence, at: datetime | None
) -> Iterator[str]:
    yield from readable("the statements", edge_problems(ledger.attestations, evidence, at))
    for kind in (*STEP_STATEMENTS.values(), Withdrawal):
        problems = statement_problems(kind, ledger.attestations, evidence, at)
        yield from readable("the statements", problems)
    names = alias_problems(ledger.aliases, ledger.attestations, evidence, at)
    yield from readable("the history of names", names)
    yield from readable("the statements", _of_kinds(ledger.attestations))
    yield from readable("the statements", _of_no_run(ledger.attestations, runs, evidence))
    reappearances = reappearance_problems(ledger.attestations, evidence.trusted)
    yield from readable("the statements", reappearances)
    yield from readable("the history of names", report_problems(ledger.aliases, ledger.objects, at))
    yield from readable("the signing keys", _of_keys(ledger.signing_keys, evidence))
    yield from readable("the ledger", _of_orphans(ledger))
    run_names = {*runs, *ledger.run_names()}
    orphans = orphan_problems(ledger.attestations, run_names, evidence)
    yield from readable("the evidence mirror", orphans)


def _of_kinds(attestations: Attestations) -> Iterator[str]:
    for attestation in attestations.all():
        if attestation.kind not in get_args(AttestationKind):
            yield f"the statement {attestation.name} is of an unknown kind, {attestation.kind!r}"


def _of_no_run(
    attestations: Attestations, runs: Container[str], evidence: Evidence
) -> Iterator[str]:
    """Declarations that no run is asked for; those of a run are checked with it."""
    for row in attestations.all():
        if row.run and row.run not in runs and row.kind in ("erasure", "restore"):
            try:
                check_attested(row, DECLARATIONS[row.kind], evidence.trusted)
            except EvidenceError as error:
                yield f"the {row.kind} {row.name} does not verify: {error}"


def _of_keys(keys: SigningKeys, evidence: Evidence) -> Iterator[str]:
    trusted = {name: public_pem(key).decode() for name, key in evidence.trusted.items()}
    for key in keys.all():
        if trusted.get(key.key) != key.public:
            yield f"the key {key.key} of the ledger is none that is trusted"


def _of_orphans(ledger: Ledger) -> Iterator[str]:
    yield from ledger.orphan_rows()
