"""Questions to a large ledger against their targets: `make bench-audit`.

`.bench/audit.json`. A store grows to 10,000, 100,000 and a million episodes (SMALL=1: a hundredth
of each), on SQLite and on PostgreSQL with the same rows, and is asked at each size. There is an
agent for each 100 episodes and a simulator for each 1,000; one agent has a tenth of all episodes.
The yardstick is MLflow's own search over the same versions, which proves nothing.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.audit_ledger import Book, PostgresSink, SqliteSink
from benchmarks.audit_questions import Answers, MlflowAnswers, answers, mlflow_answers
from benchmarks.audit_store import AuditStore, Size
from benchmarks.report import empty_folder, measured_on, publish
from machines import postgres

_SIZES = (10_000, 100_000, 1_000_000)


def main() -> int:
    """Exit status 1 if a required target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("episodes", type=int, nargs="*", default=_SIZES)
    parser.add_argument("--asked", type=int, default=500)
    arguments = parser.parse_args()
    machine_fields = measured_on()
    sizes = [Size(max(2, num // 1_000), max(5, num // 100), num) for num in arguments.episodes]
    store = empty_folder("audit")
    start = time.monotonic()
    try:
        results = measure(store, sizes, arguments.asked)
    finally:
        shutil.rmtree(store)
    result = {
        **machine_fields,
        **values_of("sqlite", results[-1]),
        **values_of("postgresql", results[-1]),
        **yardstick(results[-1]),
        "sizes": results,
        "wall_seconds": round(time.monotonic() - start),
    }
    print(json.dumps(result, indent=2))
    options = "SMALL=1" if arguments.episodes != _SIZES else ""
    return publish("audit", result, options=options)


def measure(store: Path, sizes: Sequence[Size], num_questions: int) -> list[dict[str, object]]:
    """The times at each size, by the kind of database."""
    sqlite = f"sqlite:///{store}/ledger.db"
    with postgres.running() as server, server.database() as postgresql:
        urls = {"sqlite": sqlite, "postgresql": postgresql}
        audit_store = AuditStore(store, Book(SqliteSink(sqlite), PostgresSink(postgresql)))
        return [at_size(audit_store, size, urls, num_questions) for size in sizes]


def at_size(
    audit_store: AuditStore, size: Size, urls: dict[str, str], num_questions: int
) -> dict[str, object]:
    """Grows the store, and times its questions."""
    start = time.monotonic()
    large = audit_store.grow(size)
    write_seconds = time.monotonic() - start
    figures: dict[str, object] = {**size._asdict(), "write_seconds": round(write_seconds)}
    figures["mlflow"] = mlflow_answers(audit_store, num_questions).model_dump()
    for kind, url in urls.items():
        figures[kind] = answers(audit_store, large, url, num_questions).model_dump()
    figures["seconds"] = round(time.monotonic() - start)
    print(json.dumps(figures), file=sys.stderr)
    return figures


def values_of(kind: str, results: dict[str, object]) -> dict[str, float]:
    """The figures of one kind of database that have targets."""
    result = Answers.model_validate(results[kind])
    return {
        f"{kind}.forward_p99_ms": result.forward.p99_ms,
        f"{kind}.inverse_p99_ms": result.inverse.p99_ms,
        f"{kind}.register_seconds": result.register_seconds,
        f"{kind}.problems": float(result.problems),
        f"{kind}.verify_steps_per_second": result.verify_steps_per_second,
    }


def yardstick(results: dict[str, object]) -> dict[str, float]:
    """The same two questions to MLflow."""
    result = MlflowAnswers.model_validate(results["mlflow"])
    return {
        "mlflow_forward_ms": result.forward.p99_ms,
        "mlflow_inverse_ms": result.inverse.p99_ms,
    }


if __name__ == "__main__":
    sys.exit(main())
