"""The ledger's raw data: rows of a database, objects and copies of checkpoints in folders.

Reads with the drivers of the databases only.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

Row = dict[str, Any]


class Step(NamedTuple):
    """A row of a step, with its texts."""

    row: Row
    action: str | None
    observation: str | None

    @property
    def outcome(self) -> tuple[float | None, bool, bool]:
        """Reward, done and truncated."""
        return self.row["reward"], bool(self.row["done"]), bool(self.row["truncated"])

    @property
    def confidence(self) -> tuple[float | None, float | None, bool]:
        """Mean log-probability, agreement and whether it is low."""
        row = self.row
        return row["mean_logprob"], row["agreement"], bool(row["low_confidence"])


class Episode(NamedTuple):
    """A row of an episode, its opening, and its steps by number."""

    row: Row
    opening_text: str
    steps: dict[int, Step]

    @property
    def opening(self) -> Row:
        """The episode's opening."""
        fields: Row = json.loads(self.opening_text)
        return fields

    def content(self, number: int) -> tuple[object, ...] | None:
        """The client-visible content of a step."""
        step = self.steps.get(number)
        return step and (step.action, step.observation, *step.outcome, *step.confidence)


class Books(NamedTuple):
    """The whole ledger."""

    runs: dict[str, Row]
    episodes: dict[str, Episode]
    log: dict[str, list[tuple[int, bytes]]]
    """By run and sequence number."""
    checkpoints: dict[tuple[str, int], bytes]
    copies: dict[tuple[str, int], bytes]

    def turn(self, episode: str, number: int) -> tuple[str, str] | None:
        """The action and the observation of a step; null if it is missing."""
        step = episode in self.episodes and self.episodes[episode].steps.get(number)
        return (step.action or "", step.observation or "") if step else None


def read_books(url: str, folder: Path) -> Books:
    """Reads the ledger at this URL and in the folders beside it."""
    tables = {name: _rows(url, name) for name in ("runs", "log", "episodes", "steps")}
    episodes = {
        row["id"]: Episode(
            row, _text(folder / "objects", row["opening"], row["opening_digest"]) or "{}", {}
        )
        for row in tables["episodes"]
    }
    names = {row["key"]: row["id"] for row in tables["episodes"]}
    for row in tables["steps"]:
        texts = (
            _text(folder / "objects", row[name], row[f"{name}_digest"])
            for name in ("action", "observation")
        )
        episodes[names[row["episode"]]].steps[row["number"]] = Step(row, *texts)
    log: dict[str, list[tuple[int, bytes]]] = {row["id"]: [] for row in tables["runs"]}
    for row in sorted(tables["log"], key=lambda row: row["sequence"]):
        log[row["run"]].append((row["sequence"], bytes(row["body"])))
    return Books(
        {row["id"]: row for row in tables["runs"]},
        episodes,
        log,
        {(r["run"], r["length"]): bytes(r["envelope"]) for r in _rows(url, "checkpoints")},
        _copies(folder / "mirror"),
    )


def _rows(url: str, table: str) -> list[Row]:
    if url.startswith("sqlite:///"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(f"SELECT * FROM {table}")]
    import psycopg  # the import takes a quarter of a second, and most tests have no such server

    address = url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(address, row_factory=psycopg.rows.dict_row) as server:
        return list(server.execute(f"SELECT * FROM {table}"))


def _text(objects: Path, data: bytes | None, digest: str) -> str | None:
    """A text from its row, or from the file of its digest; null if it is missing."""
    if data is None:
        name = digest.removeprefix("sha256:")
        file = objects / name[:2] / name
        data = file.read_bytes() if file.exists() else None
    return None if data is None else bytes(data).decode("utf-8", "surrogatepass")


def _copies(folder: Path) -> dict[tuple[str, int], bytes]:
    files = folder.glob("*/*.dsse.json")
    run_files = [file for file in files if "-" not in file.parent.name]
    return {(file.parent.name, int(file.name[:12])): file.read_bytes() for file in run_files}
