"""Checks that the history of aliases matches the signed changes.

Each change names its predecessor, so none can be left out or moved. Changes from before signing
began are listed in the genesis statement.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from agentworld.audit.checks.mirror import (
    check_statements,
    find_rows,
    statement_problems,
    verified_pairs,
    verified_rows,
)
from agentworld.audit.read.evidence import Evidence, as_of, genesis_of
from agentworld.errors import EvidenceError
from agentworld.ledger.aliases import Aliases
from agentworld.ledger.attestations import Attestations
from agentworld.records.base import Digest
from agentworld.records.statements.alias import AliasChange, AliasEntry, alias_entries
from agentworld.records.statements.genesis import Genesis
from agentworld.records.statements.restore import Restore

_Histories = dict[str, list[AliasChange]]
"""The changes of each alias in their order."""


def agent_changes(
    attestations: Attestations, evidence: Evidence, name: str = ""
) -> list[AliasChange]:
    """The verified changes of all agents' aliases, or of one agent's, by alias and in their
    order.
    """
    rows = find_rows(AliasEntry, attestations, f"{name}@")
    entries = verified_rows(rows, AliasEntry, evidence)
    return [change for history in _histories(entries).values() for change in history]


def in_use(changes: Iterable[AliasChange]) -> list[AliasChange]:
    """The newest change of each alias that has not been ended."""
    newest = {change.alias: change for change in changes}
    return [change for change in newest.values() if not change.ended]


def alias_problems(
    aliases: Aliases, attestations: Attestations, evidence: Evidence
) -> Iterator[str]:
    """Problems of the history of aliases and of the statements that it depends on, a sentence each.
    Covers the whole history, or the changes up to the evidence's time.
    """
    yield from statement_problems(Restore, attestations, evidence, of="")
    for kind in (Genesis, AliasEntry):
        yield from statement_problems(kind, attestations, evidence)
    yield from history_problems(aliases, attestations, evidence)


def history_problems(
    aliases: Aliases, attestations: Attestations, evidence: Evidence
) -> Iterator[str]:
    """Where the history differs from the signed changes, each with alias, time and target.

    Aliases that moved before the ledger was first signed cannot be checked.
    """
    genesis = None
    with suppress(EvidenceError):  # `alias_problems` reports it; its names then belong to no tenant
        genesis = genesis_of(attestations, evidence.mirror, evidence.trusted)
    lost_names = evidence.read_declarations(attestations).lost
    # Copies are read first: a statement that is signed in the meantime is in the ledger before it
    # has a copy.
    checked = check_statements(AliasEntry, attestations, evidence)
    if genesis is None and not checked.verified and not checked.missing:
        return
    entries = alias_entries(genesis.changes if genesis else ())
    at_genesis = {entry.path: entry for entry in entries if entry.path not in lost_names}
    signed = {**at_genesis, **checked.verified, **checked.missing}
    rows, garbled = _rows(aliases)
    yield from garbled.values()
    # Compares with the statements that were signed before the rows were read.
    newest = verified_pairs(find_rows(AliasEntry, attestations), AliasEntry, evidence)
    by_now = signed | {row.name: entry for row, entry in newest}
    earlier, now = _histories(signed.values()), _histories(by_now.values())
    for alias in sorted((now.keys() | rows.keys()) - garbled.keys()):
        yield from _differences(
            *(as_of(histories.get(alias, []), evidence.at) for histories in (earlier, rows, now))
        )


def _rows(aliases: Aliases) -> tuple[_Histories, dict[str, str]]:
    """The histories in the ledger, and the reasons why others cannot be read."""
    changes, garbled = aliases.readable_history()
    rows: _Histories = {}
    for change in changes:
        rows.setdefault(change.alias, []).append(change)
    return rows, garbled


def _histories(entries: Iterable[AliasEntry]) -> _Histories:
    """Orders changes by the predecessor that each names; those without a known predecessor come
    last.
    """
    remaining = sorted(entries, key=lambda entry: entry.change.at)
    histories: _Histories = {}
    last: dict[str, Digest | None] = {}
    while remaining:
        successors = (
            candidate
            for candidate in remaining
            if candidate.previous == last.get(candidate.change.alias)
        )
        entry = next(successors, remaining[0])
        remaining.remove(entry)
        last[entry.change.alias] = entry.digest
        histories.setdefault(entry.change.alias, []).append(entry.change)
    return histories


def _differences(
    earlier: list[AliasChange], rows: list[AliasChange], now: list[AliasChange]
) -> Iterator[str]:
    """Differences of one alias: the signed changes, the rows read after them, and the changes
    signed by then.
    """
    missing = list((Counter(earlier) - Counter(rows)).elements())
    added = list((Counter(rows) - Counter(now)).elements())
    for change in missing:
        other = next((candidate for candidate in added if candidate.at == change.at), None)
        if other is None:
            yield f"it was signed that {change.text}, and the ledger does not have it"
        else:
            added.remove(other)
            yield f"it was signed that {change.text}, but the ledger says that {other.text}"
    for change in added:
        yield f"the ledger says that {change.text}, which is not signed"
    if not missing and not added and rows != now[: len(rows)]:
        yield f"the changes of alias {rows[0].alias!r} are not in the signed order"
