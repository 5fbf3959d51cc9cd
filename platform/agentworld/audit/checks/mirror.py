"""Checks that statements in the ledger and their copies in the evidence mirror match.

Covers every kind, by its declaration. A row may exist for a moment without its copy; a copy is
never newer than its row.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Generic, NamedTuple, TypeVar

from agentworld.audit.read.evidence import Evidence, as_of, copies_of
from agentworld.errors import EvidenceError
from agentworld.ledger.attestations import Attestations
from agentworld.records.attestation import Attestation
from agentworld.records.statements.base import LedgerColumns, SignedRecord
from agentworld.signing.envelope import signed_at, verify_copy, verify_row

_Signed = TypeVar("_Signed", bound=SignedRecord)
_Problem = tuple[str, Sequence[bytes]]
"""A sentence, and the envelopes that it is about."""


class Statements(NamedTuple, Generic[_Signed]):
    """The statements of a kind, or some of them, by their names."""

    rows: Mapping[str, Attestation]
    copies: Mapping[str, bytes]
    verified: Mapping[str, _Signed]
    """Statements in the ledger that match their signatures."""
    missing: Mapping[str, _Signed]
    """Statements that only the evidence mirror has and that are not declared lost."""
    problems: Sequence[str]
    """Problems of the statements that were signed up to the evidence's time."""


def check_statements(
    kind: type[_Signed],
    attestations: Attestations,
    evidence: Evidence,
    *,
    of: str | None = None,
    lost: Container[str] | None = None,
) -> Statements[_Signed]:
    """Compares rows and copies of a kind: all, or those whose column holds `of`.

    `lost` are names that the ledger may lack; by default those declared lost.
    """
    # Copies are read first: a statement signed in the meantime is in the ledger before it has a
    # copy.
    copies = copies_of(kind.folder if of is None else kind.folder_of(of), evidence.mirror)
    row_list = find_rows(kind, attestations, of)
    lost_names = evidence.read_declarations(attestations).lost if lost is None else lost
    verified, missing, problems = dict[str, _Signed](), dict[str, _Signed](), list[_Problem]()
    for row in row_list:
        try:
            verified[row.name] = verify_row(row, kind, evidence.keys_of(kind))
        except EvidenceError as error:
            sentence = _describe_unverified(row, kind, evidence, error)
            problems.append((sentence, [row.envelope]))
    rows = {row.name: row for row in row_list}
    for name in sorted(copies.keys() - rows.keys()):
        if name in lost_names:
            continue
        try:
            record = verify_copy(name, copies[name], kind, evidence.keys_of(kind))
        except EvidenceError as error:
            sentence = f"the copy {name} does not verify: {error}"
        else:
            if of is not None and not record.is_of(of):
                continue
            missing[name] = record
            sentence = f"{record.describe(name)} {kind.missing_text}"
        problems.append((sentence, [copies[name]]))
    problems += _find_exchanged(kind, rows, copies)
    problems = as_of(problems, evidence.at, lambda problem: _earliest(problem[1], kind))
    return Statements(rows, copies, verified, missing, [sentence for sentence, _ in problems])


def statement_problems(
    kind: type[SignedRecord],
    attestations: Attestations,
    evidence: Evidence,
    of: str | None = None,
) -> Iterator[str]:
    """Problems of a kind's statements, a sentence each."""
    yield from check_statements(kind, attestations, evidence, of=of).problems


def verified_rows(
    rows: Sequence[Attestation], kind: type[_Signed], evidence: Evidence
) -> list[_Signed]:
    """The verified statements of rows, up to the evidence's time."""
    return [record for _, record in verified_pairs(rows, kind, evidence)]


def verified_pairs(
    rows: Sequence[Attestation], kind: type[_Signed], evidence: Evidence
) -> list[tuple[Attestation, _Signed]]:
    """Like `verified_rows`, each with its row."""
    pairs = []
    for row in rows:
        with suppress(EvidenceError):  # `check_statements` reports it
            pairs.append((row, verify_row(row, kind, evidence.keys_of(kind))))
    return as_of(pairs, evidence.at, lambda pair: pair[1].columns.at)


def find_rows(
    kind: type[SignedRecord], attestations: Attestations, of: str | None = None
) -> list[Attestation]:
    """The rows of a kind, or those whose column holds `of`."""
    if of is None:
        return attestations.find(kind.kind)
    if kind.column == "name":
        return attestations.find_under(kind.kind, f"{kind.folder_of(of)}/")
    return attestations.find(kind.kind, **{kind.column: of})


def _find_exchanged(
    kind: type[SignedRecord], rows: Mapping[str, Attestation], copies: Mapping[str, bytes]
) -> Iterator[_Problem]:
    for name in sorted(copies.keys() & rows.keys()):
        row, copy = rows[name], copies[name]
        if row.envelope != copy:
            sentence = f"{_describe(row, kind)} differs in the evidence mirror"
            yield sentence, [row.envelope, copy]


def _earliest(envelopes: Sequence[bytes], kind: type[SignedRecord]) -> datetime:
    """The earliest unverified signed time of the envelopes, because an attacker who replaced one of
    two also chose its time. Raises EvidenceError if none can be read.
    """
    return min(datetime.fromisoformat(signed_at(envelope, kind)) for envelope in envelopes)


def _describe(row: Attestation, kind: type[SignedRecord]) -> str:
    columns = LedgerColumns(row.subject, row.simulator, row.run, row.at)
    return kind.describe_row(row.name, columns)


def _describe_unverified(
    row: Attestation, kind: type[SignedRecord], evidence: Evidence, error: EvidenceError
) -> str:
    """Adds the signed content if the row has the same name; under another name it may be another
    tenant's.
    """
    title = _describe(row, kind)
    problem = f"{title} does not verify: {error}"
    with suppress(EvidenceError):
        record = verify_copy(row.name, row.envelope, kind, evidence.keys_of(kind))
        signed = kind.describe_row(row.name, record.columns)
        if signed != title:
            problem = f"{problem} (what was signed is {signed})"
        if record.columns.at != row.at:
            problem = f"{problem} (signed at {record.columns.at}, in the ledger at {row.at!r})"
    return problem
