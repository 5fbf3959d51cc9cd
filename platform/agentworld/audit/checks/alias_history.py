"""Whether the history of aliases is the one that was signed, change by change.

Each change names the one before it, so that none can be left out or put elsewhere. What was there
before changes were signed is as the genesis has it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime

from agentworld.audit.checks.genesis import genesis_problems
from agentworld.audit.checks.losses import lost_of
from agentworld.audit.read.at_time import is_as_of
from agentworld.audit.read.declarations import genesis_of
from agentworld.audit.read.evidence import Evidence, copies_of
from agentworld.errors import EvidenceError
from agentworld.ledger.aliases import Aliases
from agentworld.ledger.attestations import Attestations
from agentworld.records.alias import AliasChange
from agentworld.records.base import Digest
from agentworld.records.declaration import ALIAS_CHANGES, AliasEntry, alias_entries
from agentworld.signing.declaration import check_attested, verify_declared

_Entries = dict[str, AliasEntry]
"""What was signed, by the names of its copies."""
_Histories = dict[str, list[AliasChange]]
"""By aliases, each in its order."""


def alias_problems(
    aliases: Aliases, attestations: Attestations, evidence: Evidence, at: datetime | None = None
) -> Iterator[str]:
    """What is wrong with the history of aliases, a sentence each, with alias, moment and meaning.

    Of all of it, or of the changes by a moment. Nobody can tell of aliases that moved before any
    service of today came to the ledger.
    """
    losses = lost_of(attestations, evidence)
    yield from losses.problems
    yield from genesis_problems(attestations, evidence)
    genesis = None
    with suppress(EvidenceError):  # told above; what it names is then of nobody
        genesis = genesis_of(attestations, evidence.mirror, evidence.trusted)
    # The copies first: what is signed meanwhile is in the ledger before it has one.
    copies = copies_of(ALIAS_CHANGES, evidence.mirror)
    ledger_entries, problems = _read_entries(attestations, evidence)
    copies = {name: copies[name] for name in copies.keys() - ledger_entries.keys() - losses.names}
    missing_entries, missing_problems = _read_missing(copies, evidence, at)
    yield from (*problems, *missing_problems)
    if genesis is None and not ledger_entries and not missing_entries:
        return
    entries = alias_entries(genesis.changes if genesis else ())
    at_genesis = {entry.name: entry for entry in entries if entry.name not in losses.names}
    signed = at_genesis | ledger_entries | missing_entries
    rows, garbled = _rows(aliases)
    yield from garbled.values()
    # With what was signed before the rows were read.
    newest, _ = _read_entries(attestations, evidence)
    earlier, now = _histories(signed.values()), _histories((signed | newest).values())
    for alias in sorted((now.keys() | rows.keys()) - garbled.keys()):
        yield from _differences(
            *(_by(at, histories.get(alias, [])) for histories in (earlier, rows, now))
        )


def _read_entries(attestations: Attestations, evidence: Evidence) -> tuple[_Entries, list[str]]:
    entries, problems = {}, []
    for row in attestations.find("alias"):
        try:
            entries[row.name] = check_attested(row, AliasEntry, evidence.trusted)
        except EvidenceError as error:
            problems.append(
                f"the statement of alias {row.subject!r} at {row.at} does not verify: {error}"
            )
    return entries, problems


def _read_missing(
    copies: dict[str, bytes], evidence: Evidence, at: datetime | None
) -> tuple[_Entries, list[str]]:
    """What the evidence mirror alone has, and what is to be said of it at a moment."""
    entries, problems = {}, []
    for name, envelope in sorted(copies.items()):
        try:
            entries[name] = verify_declared(envelope, AliasEntry, evidence.trusted)
        except EvidenceError as error:
            problems.append(f"the copy {name} does not verify: {error}")
        else:
            change = entries[name].change
            if is_as_of(change.at, at):
                problems.append(
                    f"the statement that {_text(change)} is gone from the ledger; restore it"
                )
    return entries, problems


def _rows(aliases: Aliases) -> tuple[_Histories, dict[str, str]]:
    """The histories as the ledger tells them, and why others cannot be read."""
    changes, garbled = aliases.readable_history()
    rows: _Histories = {}
    for change in changes:
        rows.setdefault(change.alias, []).append(change)
    return rows, garbled


def _histories(entries: Iterable[AliasEntry]) -> _Histories:
    """By each one's word on what was before it; what hangs on nothing known comes last."""
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


def _by(at: datetime | None, changes: list[AliasChange]) -> list[AliasChange]:
    return [change for change in changes if is_as_of(change.at, at)]


def _differences(
    earlier: list[AliasChange], rows: list[AliasChange], now: list[AliasChange]
) -> Iterator[str]:
    """Of one alias: what was signed, what the ledger had after that, what was signed by then."""
    missing = list((Counter(earlier) - Counter(rows)).elements())
    added = list((Counter(rows) - Counter(now)).elements())
    for change in missing:
        other = next((candidate for candidate in added if candidate.at == change.at), None)
        if other is None:
            yield f"it was signed that {_text(change)}, and the ledger does not have it"
        else:
            added.remove(other)
            yield f"it was signed that {_text(change)}, and the ledger says that {_text(other)}"
    for change in added:
        yield f"the ledger says that {_text(change)}, and nobody signed it"
    if not missing and not added and rows != now[: len(rows)]:
        yield f"the changes of alias {rows[0].alias!r} are not in the order that was signed"


def _text(change: AliasChange) -> str:
    meaning = "nothing" if change.ended else change.simulator
    return f"alias {change.alias!r} meant {meaning} from {change.at} on, by {change.set_by!r}"
