"""People's names for simulators and for agents in use, and who gave them when.

A name is resolved, never stored.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, Connection, Row, Select, insert, select

from agentworld.errors import Conflict, EvidenceError, NotFound
from agentworld.ledger.attestations import keep
from agentworld.ledger.database import Database
from agentworld.ledger.rows import change_rows, hold
from agentworld.ledger.tables import ALIASES
from agentworld.records.base import Digest, now
from agentworld.records.garbled import reading
from agentworld.records.gate import GateResult
from agentworld.records.statements.alias import (
    AgentVersion,
    AliasChange,
    AliasKind,
    Canary,
    Meaning,
    alias_entries,
    check_alias,
    gets_canary,
)
from agentworld.records.statements.base import Declare

_GATE = TypeAdapter(tuple[GateResult, ...])
_BuildChange = Callable[[AliasChange | None], AliasChange]
"""From the last change of an alias, if it has one, to the next."""


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
        has: its canary, what let it move, and of an agent's alias its kind and the agent.
        """
        check_alias(alias, details.get("kind", "simulator"))
        change = AliasChange(alias=alias, simulator=simulator, set_by=set_by, at=now(), **details)
        return self._add(alias, lambda _: change, key, declare)

    def end(
        self,
        alias: str,
        by: str,
        *,
        reason: str | None = None,
        request: str | None = None,
        key: str | None = None,
        declare: Declare | None = None,
    ) -> AliasChange:
        """The alias means nothing from now on, which is recorded once; raises NotFound for one
        that nobody gave.
        """

        def build(last: AliasChange | None) -> AliasChange:
            if last is None:
                raise NotFound(f"there is no alias {alias!r}; name another one")
            return last.end(by, now(), reason, request)

        return self._add(alias, build, key, declare)

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
        changes = self.history(alias, "simulator")
        if not changes or (meaning := changes[-1].meaning) is None:
            raise NotFound(
                f"there is no alias {alias!r}; set it with `agentworld alias set`, or give a digest"
            )
        return meaning

    def history(self, alias: str | None = None, kind: AliasKind | None = None) -> list[AliasChange]:
        """What an alias, or each of a kind, meant over time; raises EvidenceError where a row is
        garbled.
        """
        return self._changes(_conditions(alias=alias, kind=kind))

    def readable_history(self, kind: AliasKind | None = None) -> "History":
        """The same of all aliases, as far as it can be read."""
        changes, garbled = list[AliasChange](), dict[str, str]()
        with self._database.transaction() as connection:
            for row in connection.execute(_select(_conditions(kind=kind))):
                try:
                    changes.append(_change(row))
                except EvidenceError as error:
                    garbled[str(row.alias)] = str(error)
        return History(changes, garbled)

    def _add(
        self, alias: str, build: _BuildChange, key: str | None, declare: Declare | None
    ) -> AliasChange:
        try:
            with self._database.transaction() as connection:
                hold(connection, ALIASES)  # each change names the one before it
                history = _read(connection, _conditions(alias=alias))
                last = history[-1] if history else None
                change = build(last)
                if last and change.repeats(last):
                    return last
                change_rows(connection, insert(ALIASES).values(**_row(change), idempotency_key=key))
                if declare:
                    keep(connection, declare(alias_entries([*history, change])[-1]))
        except Conflict:
            if previous := self._of_key(alias, key):
                return previous
            raise
        return change

    def _of_key(self, alias: str, key: str | None) -> AliasChange | None:
        conditions = _conditions(alias=alias, idempotency_key=key)
        return next(iter(self._changes(conditions)), None) if key else None

    def _changes(self, conditions: list[ColumnElement[bool]]) -> list[AliasChange]:
        with self._database.transaction() as connection:
            return _read(connection, conditions)


def _conditions(**columns: str | None) -> list[ColumnElement[bool]]:
    return [ALIASES.c[name] == value for name, value in columns.items() if value is not None]


def _read(connection: Connection, conditions: list[ColumnElement[bool]]) -> list[AliasChange]:
    return [_change(row) for row in connection.execute(_select(conditions))]


def _select(conditions: list[ColumnElement[bool]]) -> Select[Any]:
    return select(ALIASES).where(*conditions).order_by(ALIASES.c.sequence)


def _row(change: AliasChange) -> Mapping[str, object]:
    canary, gate = change.canary, [result.model_dump(mode="json") for result in change.gate]
    own = change.model_dump(exclude={"canary", "gate", "agent"})
    agent = change.agent.model_dump() if change.agent else {}
    return {
        **own,
        **agent,
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
    agent = {name: fields.pop(name) for name in AgentVersion.model_fields}
    with reading(f"the history of alias {str(row.alias)!r}"):
        return AliasChange(
            **fields,
            agent=None if {*agent.values()} == {None} else AgentVersion(**agent),
            canary=None if has_no_canary else Canary(simulator=canary_simulator, percent=percent),
            gate=_GATE.validate_json(gate or "[]"),
        )
