"""People's names for simulators, and who gave them when. A name is resolved, never stored."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Connection, Row, Select, insert, select

from agentworld.errors import Conflict, EvidenceError, InputError, NotFound
from agentworld.ledger.attestations import keep
from agentworld.ledger.database import Database
from agentworld.ledger.rows import change_rows, hold
from agentworld.ledger.tables import ALIASES
from agentworld.records.alias import AliasChange, Canary, Meaning, gets_canary
from agentworld.records.base import Digest, now
from agentworld.records.garbled import reading
from agentworld.records.gate import GateResult
from agentworld.records.statements.alias import alias_entries
from agentworld.records.statements.base import Declare

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_GATE = TypeAdapter(tuple[GateResult, ...])


class History(NamedTuple):
    """What aliases meant over time, in the order of the changes."""

    changes: list[AliasChange]
    garbled: dict[str, str]
    """By alias, why a change of it cannot be read."""


class Aliases:
    """The history of all aliases; nothing in it changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set(
        self,
        alias: str,
        simulator: Digest,
        set_by: str,
        *,
        key: str | None = None,
        declare: Declare | None = None,
        **details: Any,
    ) -> AliasChange:
        """From now on the alias means this simulator; runs that are open keep theirs.

        Told again with its key it is recorded once. `declare` signs the change, which is kept
        together with it or not at all; without it nobody signs it. `details` is what else a change
        has: its canary, and what let it move.
        """
        change = AliasChange(
            alias=check_alias(alias), simulator=simulator, set_by=set_by, at=now(), **details
        )
        return self._add(change, key, declare)

    def end(
        self,
        alias: str,
        by: str,
        *,
        key: str | None = None,
        declare: Declare | None = None,
        request: str | None = None,
    ) -> AliasChange:
        """The alias means nothing from now on; raises NotFound where it meant nothing before."""
        if change := self._of_key(alias, key):
            return change
        simulator = self.meaning(alias).simulator
        fields = {"alias": alias, "simulator": simulator, "set_by": by, "at": now()}
        change = AliasChange.model_validate({**fields, "request": request, "ended": True})
        return self._add(change, key, declare)

    def resolve(self, name: str, run: str | None = None) -> Digest:
        """The simulator that a digest is, or that an alias means now; raises NotFound.

        A canary is meant for its part of the runs, and never where no run is named.
        """
        if name.startswith("sha256:"):
            return name
        simulator, canary = self.meaning(name)
        if canary and run is not None and gets_canary(name, run, canary.percent):
            return canary.simulator
        return simulator

    def meaning(self, alias: str) -> Meaning:
        """What the alias means now, by its last recorded change; raises NotFound for nothing."""
        changes = self.history(alias)
        if not changes or (meaning := changes[-1].meaning) is None:
            raise NotFound(
                f"there is no alias {alias!r}; set it with `agentworld alias set`, or give a digest"
            )
        return meaning

    def history(self, alias: str | None = None) -> list[AliasChange]:
        """What an alias, or each, meant over time; raises EvidenceError where a row is garbled."""
        return self._changes([] if alias is None else [ALIASES.c.alias == alias])

    def readable_history(self) -> "History":
        """The same of all aliases, as far as it can be read."""
        changes, garbled = list[AliasChange](), dict[str, str]()
        with self._database.transaction() as connection:
            for row in connection.execute(_select([])):
                try:
                    changes.append(_change(row))
                except EvidenceError as error:
                    garbled[str(row.alias)] = str(error)
        return History(changes, garbled)

    def _add(self, change: AliasChange, key: str | None, declare: Declare | None) -> AliasChange:
        try:
            with self._database.transaction() as connection:
                hold(connection, ALIASES)  # each change names the one before it
                change_rows(connection, insert(ALIASES).values(**_row(change), idempotency_key=key))
                if declare:
                    history = _read(connection, [ALIASES.c.alias == change.alias])
                    keep(connection, declare(alias_entries(history)[-1]))
        except Conflict:
            if previous := self._of_key(change.alias, key):
                return previous
            raise
        return change

    def _of_key(self, alias: str, key: str | None) -> AliasChange | None:
        conditions = [ALIASES.c.alias == alias, ALIASES.c.idempotency_key == key]
        return next(iter(self._changes(conditions)), None) if key else None

    def _changes(self, conditions: list[ColumnElement[bool]]) -> list[AliasChange]:
        with self._database.transaction() as connection:
            return _read(connection, conditions)


def check_alias(alias: str) -> str:
    """The alias; raises InputError for what is no name of one."""
    if not _NAME.fullmatch(alias):
        raise InputError(f"{alias!r} is no alias; use lower-case letters, digits, dots and dashes")
    return alias


def _read(connection: Connection, conditions: list[ColumnElement[bool]]) -> list[AliasChange]:
    return [_change(row) for row in connection.execute(_select(conditions))]


def _select(conditions: list[ColumnElement[bool]]) -> Select[Any]:
    return select(ALIASES).where(*conditions).order_by(ALIASES.c.sequence)


def _row(change: AliasChange) -> Mapping[str, object]:
    canary, gate = change.canary, [result.model_dump(mode="json") for result in change.gate]
    own = change.model_dump(exclude={"canary", "gate"})
    return own | {
        "canary": canary and canary.simulator,
        "canary_percent": canary and canary.percent,
        "gate": json.dumps(gate) if gate else None,
    }


def _change(row: Row[Any]) -> AliasChange:
    """Raises EvidenceError where the row is none that a change ever had."""
    fields = dict(row._mapping)
    percent, gate = fields.pop("canary_percent"), fields.pop("gate")
    for name in ("sequence", "idempotency_key"):
        del fields[name]
    canary_simulator = fields.pop("canary")
    has_no_canary = canary_simulator is None and percent is None
    with reading(f"the history of alias {str(row.alias)!r}"):
        canary = None if has_no_canary else Canary(simulator=canary_simulator, percent=percent)
        gate_results = _GATE.validate_json(gate or "[]")
        return AliasChange(**fields, canary=canary, gate=gate_results)
