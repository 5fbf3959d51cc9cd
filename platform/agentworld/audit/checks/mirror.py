"""Whether statements are in the ledger as they were signed, and in the evidence mirror the same.

All that is said of a row and of its copy is said here, for every kind, by what the kind says of
itself. A row may be older than its copy, for a moment; a copy never is older than its row.
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
"""A sentence, and what it is about."""


class Statements(NamedTuple, Generic[_Signed]):
    """Those of a kind, or some of them, by their names."""

    rows: Mapping[str, Attestation]
    copies: Mapping[str, bytes]
    verified: Mapping[str, _Signed]
    """What the ledger has as it was signed."""
    missing: Mapping[str, _Signed]
    """What the evidence mirror alone has, and nobody declared to be lost."""
    problems: Sequence[str]
    """Of what was signed by the moment of which is asked."""


def check_statements(
    kind: type[_Signed],
    attestations: Attestations,
    evidence: Evidence,
    *,
    of: str | None = None,
    lost: Container[str] | None = None,
) -> Statements[_Signed]:
    """Compares rows and copies of a kind: all of them, or those `of` what its column holds.

    `lost` are names that need not be in the ledger; without it those that it declares to be.
    """
    # The copies first: what is signed meanwhile is in the ledger before it has one.
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
    """What is wrong with them, a sentence each."""
    yield from check_statements(kind, attestations, evidence, of=of).problems


def verified_rows(
    rows: Sequence[Attestation], kind: type[_Signed], evidence: Evidence
) -> list[_Signed]:
    """Those of some rows that are as they were signed, by the moment of which is asked."""
    return [record for _, record in verified_pairs(rows, kind, evidence)]


def verified_pairs(
    rows: Sequence[Attestation], kind: type[_Signed], evidence: Evidence
) -> list[tuple[Attestation, _Signed]]:
    """The same, each with its row."""
    pairs = []
    for row in rows:
        with suppress(EvidenceError):  # which `check_statements` tells
            pairs.append((row, verify_row(row, kind, evidence.keys_of(kind))))
    return as_of(pairs, evidence.at, lambda pair: pair[1].columns.at)


def find_rows(
    kind: type[SignedRecord], attestations: Attestations, of: str | None = None
) -> list[Attestation]:
    """Those of a kind, or those `of` what its column holds."""
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
            sentence = f"{_describe(row, kind)} is another one in the evidence mirror"
            yield sentence, [row.envelope, copy]


def _earliest(envelopes: Sequence[bytes], kind: type[SignedRecord]) -> datetime:
    """When one of them was signed, by its own words and whoever signed it: who exchanged one of two
    chose what that says. Raises EvidenceError for no words.
    """
    return min(datetime.fromisoformat(signed_at(envelope, kind)) for envelope in envelopes)


def _describe(row: Attestation, kind: type[SignedRecord]) -> str:
    columns = LedgerColumns(row.subject, row.simulator, row.run, row.at)
    return kind.describe_row(row.name, columns)


def _describe_unverified(
    row: Attestation, kind: type[SignedRecord], evidence: Evidence, error: EvidenceError
) -> str:
    """With what was signed under its name, where the row calls itself otherwise; what was signed
    under another name may be another tenant's.
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
