"""The state after a batch of faults: the cluster's objects, and the ledger's rows.

Reads directly, not through the operator or its service: with the administrator's client and
SQLite's driver.
"""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from campaigns.harness.journal import read
from make.operator import Namespace

Object = dict[str, Any]

CHILDREN = ("ConfigMap", "Service", "Deployment", "PodDisruptionBudget")
_OPEN = """SELECT runs.simulator, COUNT(*) FROM episodes JOIN runs ON runs.id = episodes.run
    WHERE episodes.closed IS NULL AND runs.final_weights IS NULL GROUP BY runs.simulator"""


class Snapshot(NamedTuple):
    """A near-simultaneous snapshot."""

    simulators: dict[str, Object]
    aliases: dict[str, Object]
    children: dict[str, dict[str, Object]]
    """By kind and name, without other users' objects in the namespace."""
    episodes: dict[str, int]
    """The number of open episodes, by digest."""
    rows: list[Object]
    """The ledger's rows of aliases, the oldest first."""
    moves: list[Object]
    """The moves that users requested, with the responses."""


def look(namespace: Namespace, ledger: Path, folder: Path) -> Snapshot:
    """Reads the state; raises ClusterError if the API server does not respond."""
    return Snapshot(
        simulators=_named(namespace, "Simulator"),
        aliases=_named(namespace, "SimulatorAlias"),
        children={kind: _engines(_named(namespace, kind)) for kind in CHILDREN},
        episodes=Counter(dict(_rows(ledger, _OPEN))),
        rows=[dict(row) for row in _rows(ledger, "SELECT * FROM aliases ORDER BY sequence")],
        moves=list(read(folder / "moves.jsonl")),
    )


def _named(namespace: Namespace, kind: str) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in namespace.all(kind).objects}


def _engines(resources: dict[str, Object]) -> dict[str, Object]:
    """The objects of engines, also those without their label."""
    return {
        name: deployment for name, deployment in resources.items() if name.startswith("engine-")
    }


def _rows(ledger: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return list(database.execute(query))
