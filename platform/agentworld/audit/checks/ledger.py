"""Checks a whole ledger against its signatures: runs, edges and aliases.

A problem is a sentence that names its run, edge, alias or key. Records since the last signature are
not a problem: they are chained, and the next signature covers them.
"""

from collections.abc import Collection, Container, Iterator

from pydantic import SerializeAsAny, computed_field

from agentworld.audit.checks.alias_history import history_problems
from agentworld.audit.checks.losses import is_checkpoint, reappearance_problems
from agentworld.audit.checks.mirror import find_rows, statement_problems
from agentworld.audit.checks.run import garbled_run, infrequent_gc, verify_any
from agentworld.audit.read.evidence import Evidence, Finding, as_of, state_of
from agentworld.audit.read.sources import open_runs
from agentworld.errors import AgentworldError, NotFound
from agentworld.ledger import Ledger
from agentworld.ledger.aliases import Aliases
from agentworld.ledger.attestations import Attestations
from agentworld.ledger.signing_keys import SigningKeys
from agentworld.records.base import Record, Sentence
from agentworld.records.garbled import readable
from agentworld.records.progress import OnProgress, ignore_progress
from agentworld.records.statements.base import WHOLE_LEDGER, SignedRecord, statement_kinds
from agentworld.signing.keys import public_pem
from agentworld.storage.objects import ObjectStore

_ADVICE = "find out where it came from, and remove it"


class Verification(Record):
    """The answer to: do all records match their signatures?"""

    runs: dict[Sentence, SerializeAsAny[Finding]]
    """By run id, including runs that only the evidence mirror has."""
    versions: tuple[Finding, ...] = ()
    others: tuple[Finding, ...] = ()
    """Findings about anything other than a run or a version, and about consistency between
    records.
    """
    at: str | None = None
    """The time asked about; null is now. Records that existed then are verified as they are now."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def problems(self) -> tuple[Sentence, ...]:
        """Changed, added or missing records; empty if everything matches."""
        of_runs = (problem for run in self.runs.values() for problem in run.qualified_problems)
        others = (*self.others, *self.versions)
        return (*of_runs, *(problem for finding in others for problem in finding.problems))

    @property
    def num_unsigned(self) -> int:
        """The number of unsigned runs and versions: nothing contradicts them."""
        findings = (*self.runs.values(), *self.versions)
        return sum(finding.grade == "unsigned" for finding in findings)


def verify_ledger(
    ledger: Ledger, evidence: Evidence, on_progress: OnProgress = ignore_progress
) -> Verification:
    """Checks the whole ledger, also while it is written.

    For a past time, the runs that were open by then, in their present state, and the statements
    signed by then.
    """
    evidence = evidence.for_many(ledger.attestations)
    with infrequent_gc():
        runs = _runs(ledger, evidence, on_progress)
    problems = tuple(_other_problems(ledger, runs, evidence))
    own = Finding(subject="the ledger", grade=state_of(problems, signed=True), problems=problems)
    return Verification(runs=runs, others=(own,))


def _runs(ledger: Ledger, evidence: Evidence, on_progress: OnProgress) -> dict[str, Finding]:
    # Copies are read first: a run that is opened and signed in the meantime is in the ledger before
    # it has a copy.
    signed = {name.partition("/")[0] for name in evidence.mirror.names()}
    # A run's name has no dash; the names of other statements have one.
    run_names = ledger.run_names()
    missing = sorted(filter(str.isalnum, signed.difference(run_names)))
    names = [*open_runs(run_names, ledger.logs, evidence.at), *missing]
    verifications: dict[str, Finding] = {}
    for done, name in enumerate(names, 1):
        try:
            verifications[name] = verify_any(name, ledger, evidence)
        except NotFound:  # declared lost, or an invalid run name
            if name in run_names:
                verifications[name] = garbled_run(name, "its name is garbled; restore it")
        on_progress(done, len(names))
    return verifications


def _other_problems(ledger: Ledger, runs: Collection[str], evidence: Evidence) -> Iterator[str]:
    attestations = ledger.attestations
    for kind in statement_kinds().values():
        for of in _parts(kind, attestations, runs):
            problems = statement_problems(kind, attestations, evidence, of)
            yield from readable("the statements", problems)
    history = history_problems(ledger.aliases, attestations, evidence)
    yield from readable("the history of names", history)
    yield from readable("the statements", _of_kinds(attestations))
    reappearances = reappearance_problems(attestations, evidence)
    yield from readable("the statements", reappearances)
    reports = _of_reports(ledger.aliases, ledger.objects, evidence)
    yield from readable("the history of names", reports)
    yield from readable("the signing keys", _of_keys(ledger.signing_keys, evidence))
    yield from readable("the ledger", ledger.orphan_rows())
    run_names = {*runs, *ledger.run_names()}
    orphans = _mirror_orphan_problems(attestations, run_names, evidence)
    yield from readable("the evidence mirror", orphans)


def _parts(
    kind: type[SignedRecord], attestations: Attestations, runs: Collection[str]
) -> list[str | None]:
    """All statements of a kind; with `runs`, only those of these runs for kinds that belong to a
    run.
    """
    if kind.about != "run":
        return [None]
    return ["", *sorted({row.run for row in find_rows(kind, attestations)} - {"", *runs})]


def _of_kinds(attestations: Attestations) -> Iterator[str]:
    for attestation in attestations.all():
        if attestation.kind not in statement_kinds():
            yield f"the statement {attestation.name} is of an unknown kind, {attestation.kind!r}"


def _of_keys(keys: SigningKeys, evidence: Evidence) -> Iterator[str]:
    trusted = {name: public_pem(key).decode() for name, key in evidence.trusted.items()}
    for key in keys.all():
        if trusted.get(key.key) != key.public:
            yield f"the ledger's key {key.key} is not trusted"


def _of_reports(aliases: Aliases, objects: ObjectStore | None, evidence: Evidence) -> Iterator[str]:
    """Checks the reports that moved aliases: a move signs its report's digest."""
    if objects is None:
        return
    for change in as_of(aliases.readable_history().changes, evidence.at):
        if change.report is None:
            continue
        try:
            objects.get(change.report)
        except AgentworldError as error:
            if error.retryable:
                raise
            yield (
                f"alias {change.alias!r} moved at {change.at} by a report that is missing: {error}"
            )


def _mirror_orphan_problems(
    attestations: Attestations, runs: Container[str], evidence: Evidence
) -> Iterator[str]:
    """Copies in the evidence mirror without a row in the ledger; `runs` were verified."""
    for name in evidence.mirror.orphans():
        yield f"the evidence mirror has {name!r}, which is not a copy's name; {_ADVICE}"
    # Names are read first: what is copied in the meantime is in the ledger before it has a copy.
    names = evidence.mirror.names()
    ledger_names = attestations.names() | evidence.read_declarations(attestations).lost
    for name in names:
        if name not in ledger_names and not _is_compared(name, runs):
            yield (
                f"the evidence mirror has {name}, which belongs to nothing in the ledger; {_ADVICE}"
            )


def _is_compared(name: str, runs: Container[str]) -> bool:
    folder, *below = name.split("/")
    kind = next((kind for kind in statement_kinds().values() if kind.folder == folder), None)
    if kind and kind.about == "run":
        return len(below) > 1 and (below[0] in runs or below[0] == WHOLE_LEDGER)
    return bool(below) and (kind is not None or folder in runs or is_checkpoint(name))
