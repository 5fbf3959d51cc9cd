"""Converts rows to runs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, func, select, true

from agentworld.errors import EvidenceError
from agentworld.ledger.tables import EPISODES, RUNS, STEPS
from agentworld.records.base import Digest
from agentworld.records.garbled import reading
from agentworld.records.run import AgentRun, RunClosing, RunOpening

GARBLED = "garbled"
"""The value that lists show for an unreadable row; `audit verify` gives the reason."""


class Owner(NamedTuple):
    """The tenant and the simulator of a run; neither ever changes."""

    tenant: str
    simulator: Digest


class GarbledRun(NamedTuple):
    """A run whose row cannot be read, with the three columns that can."""

    id: str
    simulator: Digest
    tenant: str
    problem: str
    purpose: str = GARBLED
    agent: str = GARBLED
    opening: None = None
    final_weights: None = None
    num_episodes: int = 0
    num_steps: int = 0
    log_length: int = 0


ListedRun = AgentRun | GarbledRun


def list_runs(
    connection: Connection, *conditions: ColumnElement[bool], limit: int | None = None
) -> list[ListedRun]:
    """Runs, the newest first; a garbled row does not affect the others."""
    newest_first = select(RUNS).where(*conditions).order_by(RUNS.c.id.desc())  # names sort by time
    return [_read(row) for row in connection.execute(newest_first.limit(limit))]


def count_run(connection: Connection, run: str) -> AgentRun | None:
    """A run with its episodes and answered steps counted in one snapshot."""
    episodes = select(func.count()).where(EPISODES.c.run == RUNS.c.id)
    steps = (
        select(func.count())
        .select_from(STEPS.join(EPISODES, EPISODES.c.key == STEPS.c.episode))
        .where(EPISODES.c.run == RUNS.c.id, STEPS.c.number > EPISODES.c.num_copied)
    )
    count_columns = (episodes.scalar_subquery(), steps.scalar_subquery())
    row = connection.execute(select(RUNS, *count_columns).where(RUNS.c.id == run)).first()
    if row is None:
        return None
    *_, num_episodes, num_steps = row
    record = _run(row)
    return record.model_copy(update={"num_episodes": num_episodes, "num_steps": num_steps})


def find_owner(connection: Connection, run: str) -> Owner | None:
    """The tenant and the simulator of a run; reads no other column."""
    rows = connection.execute(select(RUNS.c.tenant, RUNS.c.simulator).where(RUNS.c.id == run))
    row = rows.first()
    return None if row is None else Owner(row.tenant, row.simulator)


def where(columns: Mapping[str, str | None]) -> list[ColumnElement[bool]]:
    """A condition that a run's columns hold these values; null matches any."""
    return [RUNS.c[name] == value for name, value in columns.items() if value is not None]


def is_of(simulator: Digest | None) -> ColumnElement[bool]:
    """A condition that a run is this simulator's; null matches any."""
    return true() if simulator is None else RUNS.c.simulator == simulator


def _read(row: Row[Any]) -> ListedRun:
    try:
        return _run(row)
    except EvidenceError as error:
        return GarbledRun(str(row.id), str(row.simulator), str(row.tenant), str(error))


def _run(row: Row[Any]) -> AgentRun:
    """Raises EvidenceError if the row is not a valid run."""
    fields = row._mapping  # an attribute of a row takes twice as long
    with reading(f"the ledger's record of run {fields['id']}"):
        weights, signature = fields["final_weights"], fields["signature"]
        closing = None
        if weights is not None or signature is not None:
            closing = RunClosing(final_weights=weights, signature=signature)
        return AgentRun(
            id=fields["id"],
            opening=RunOpening.model_validate_json(fields["opening"]),
            simulator=fields["simulator"],
            tenant=fields["tenant"],
            closing=closing,
            num_episodes=fields["num_episodes"],
            num_steps=fields["num_steps"],
            log_length=fields["log_length"],
        )
