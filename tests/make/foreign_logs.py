"""Sessions of a program without a domain: SQLite's responses to SQL, as a tool might log them."""

import random
import sqlite3
from pathlib import Path

from agentworld.records.trajectory import Trajectory, Turn
from agentworld.storage.trajectories import write_trajectories

_WORDS = "amber birch cedar delta ember fjord grove haven inlet jetty knoll lotus".split()


def write_logs(path: Path, num_episodes: int, *, domain: str = "text") -> None:
    """Writes a file of recorded sessions; their observations end with a line break."""
    write_trajectories(path, [_session(number, domain) for number in range(num_episodes)])


def _session(number: int, domain: str) -> Trajectory:
    rng = random.Random(number)
    with sqlite3.connect(":memory:") as database:
        statements = ["create table t (name text, size int)", *_statements(rng)]
        turns = tuple(
            Turn(action=statement, observation=_answer(database, statement))
            for statement in statements
        )
    return Trajectory(domain=domain, source="sqlite", initial_state="no tables", turns=turns)


def _statements(rng: random.Random) -> list[str]:
    inserts = [
        f"insert into t values ('{rng.choice(_WORDS)}', {rng.randrange(9)})" for _ in range(3)
    ]
    reads = ["select name from t", "select sum(size) from t", f"select {rng.choice(_WORDS)} from t"]
    return [*inserts, *rng.sample(reads, 2)]


def _answer(database: sqlite3.Connection, statement: str) -> str:
    try:
        cursor = database.execute(statement)
    except sqlite3.Error as error:
        return f"Error: {error}\n"
    rows = cursor.fetchall()
    return "".join("|".join(map(str, row)) + "\n" for row in rows) or f"{cursor.rowcount} changed\n"
