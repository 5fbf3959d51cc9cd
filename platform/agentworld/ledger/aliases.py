"""Aliases of simulators and agents, and who set them when.

An alias is resolved when used; records hold digests.
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
"""Returns the next change of an alias from its last one, if there is one."""


class History(NamedTuple):
    """The targets of aliases over time, in the order of the changes."""

    changes: list[AliasChange]
    garbled: dict[str, str]
    """The reason why a change cannot be read, by alias."""


class Aliases:
    """The append-only history of all aliases."""

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
        """Points the alias at this simulator; open runs keep theirs.

        A repetition with the same key is recorded once. `declare` signs the change, and both are
        kept in one transaction; without it the change is unsigned. `details` are the other fields
        of the change: its canary, its gate, and, for an agent's alias, its kind and the agent.
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
        """Ends the alias; a repetition is recorded once. Raises NotFound if the alias was never
        set.
        """

        def build(last: AliasChange | None) -> AliasChange:
            if last is None:
                raise NotFound(f"there is no alias {alias!r}; name another one")
            return last.end(by, now(), reason, request)

        return self._add(alias, build, key, declare)

    def resolve(self, name: str, run: str | None = None) -> Digest:
        """Resolves a digest or an alias to a simulator; raises NotFound.

        A canary gets its percentage of the runs, and nothing if no run is given.
        """
        if name.startswith("sha256:"):
            return name
        simulator, canary = self.meaning(name)
        if canary and run is not None and gets_canary(name, run, canary.percent):
            return canary.simulator
        return simulator

    def meaning(self, alias: str) -> Meaning:
        """The current target of the alias, from its last change; raises NotFound if it has none."""
        changes = self.history(alias, "simulator")
        if not changes or (meaning := changes[-1].meaning) is None:
            raise NotFound(
                f"there is no alias {alias!r}; set it with `agentworld alias set`, or give a digest"
            )
        return meaning

    def history(self, alias: str | None = None, kind: AliasKind | None = None) -> list[AliasChange]:
        """The targets over time of an alias, or of all of a kind; raises EvidenceError if a row is
        garbled.
        """
        return self._changes(_conditions(alias=alias, kind=kind))

    def readable_history(self, kind: AliasKind | None = None) -> "History":
        """The history of all aliases, as far as it can be read."""
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
    """Raises EvidenceError if the row is not a valid change."""
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
