"""Thousands of garbled values in a store with earlier tampering elsewhere, and the audit's
reaction.

Garbage must not end an audit or a list of the console, block them, or hide earlier problems.
"""

import os
import random
import re
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial, reduce
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from agentworld.errors import AgentworldError
from agentworld.ledger.tables import METADATA
from campaigns.garbage.files import KINDS, SPECIAL, Files
from campaigns.garbage.rows import Rows
from campaigns.garbage.scene import AuditResult, Scene, of_ledger, of_registry
from campaigns.harness.report import MOST_SENTENCES, Report, count

_SECONDS = 10
_LEAST_SECONDS = 0.05
"""The processor time that a working process gets within that wall time, at least."""
_PARTS = 4
_SHARE_OF_REGISTRY = 0.15
"""Of all cases, because MLflow is slow."""
_OF_LEDGER = ("mirror", "objects", "simulators", "steps")
_OF_REGISTRY = ("mlflow-artifacts",)
_MLFLOW = (
    *("model_versions", "model_version_tags", "registered_models", "registered_model_aliases"),
    *("runs", "tags", "inputs", "input_tags", "datasets", "experiments"),
    *("logged_models", "logged_model_tags"),
)
_NO_WORDS = re.compile(
    r"invalid literal|object is not|object has no|unsupported operand|not supported between"
    r"|Traceback|\((\w+Error)\)|NoneType"
)
"""Python's own messages, which users cannot understand."""


class GarbageReport(Report):
    """The results of a campaign."""

    cases: int = 0
    tracebacks: int = 0
    """Cases that ended an audit or a page with an exception of Python's."""
    hangs: int = 0
    """Cases in which an audit waited or computed for 10 s."""
    hidden: int = 0
    """Earlier problems that were no longer reported, and lists that were not shown."""
    unclear: int = 0
    """Problems that are reported in Python's words."""

    @property
    def clean(self) -> bool:
        return not (self.tracebacks or self.hangs or self.hidden or self.unclear)


class Place(NamedTuple):
    """A place for garbage, with its kinds in rotation."""

    kinds: list[str]
    garble: Callable[[str, random.Random], str]
    undo: Callable[[], None]


class Hung(BaseException):
    """Not an Exception, so that no reader catches it."""


def run(folder: Path, num_cases: int, seed: str) -> GarbageReport:
    """`num_cases` cases in as many processes as the machine has cores; each part has its own
    store.
    """
    start, num_registry = time.monotonic(), int(num_cases * _SHARE_OF_REGISTRY)
    num_ledger = num_cases - num_registry
    works = [partial(in_registry, folder / "mlflow", num_registry, seed)]
    for part in range(_PARTS):
        num_part_cases = (num_ledger * (part + 1)) // _PARTS - (num_ledger * part) // _PARTS
        works.append(
            partial(in_ledger, folder / f"ledger-{part}", num_part_cases, f"{seed} {part}")
        )
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        reports = [item.result() for item in [pool.submit(work) for work in works]]
    report = reduce(GarbageReport.plus, reports)
    seconds = round(time.monotonic() - start, 1)
    return report.model_copy(update={"seed": seed, "seconds": seconds})


def in_ledger(folder: Path, num_cases: int, seed: str) -> GarbageReport:
    """Garbage in rows of a ledger and in the files of a store, which is in a new folder."""
    world, scene = of_ledger(folder)
    with world.named():
        rows = Rows(folder / "ledger.db", METADATA.tables, scene.spared)
        files = Files(folder, _OF_LEDGER, scene.spared)
        return _judged(scene, [_rows(rows), _files(files)], num_cases, seed)


def in_registry(folder: Path, num_cases: int, seed: str) -> GarbageReport:
    """Garbage in rows of an MLflow, and in its files."""
    scene = of_registry(folder)
    rows = Rows(folder / "mlflow.db", _MLFLOW, scene.spared)
    files = Files(folder, _OF_REGISTRY, scene.spared)
    return _judged(scene, [_rows(rows), _files(files)], num_cases, seed)


def _rows(rows: Rows) -> Place:
    columns = {".".join(column): column for column in rows.columns}
    return Place([*columns], lambda kind, chance: rows.garble(columns[kind], chance), rows.undo)


def _files(files: Files) -> Place:
    return Place([*KINDS, *SPECIAL], files.garble, files.undo)


def _judged(scene: Scene, places: list[Place], num_cases: int, seed: str) -> GarbageReport:
    chance, counts = random.Random(seed), Counter[str]()
    kinds, sentences = Counter[str](), list[str]()
    before = scene.look()
    assert before.problems
    assert not before.failed_pages
    for place, kind in islice(_turns(places, chance), num_cases):
        detail = place.garble(kind, chance)
        kinds[kind] += 1
        for failure, description in _wrong(scene, before):
            counts[failure] += 1
            sentences.append(f"{failure} after {detail}: {description}")
        place.undo()
    assert scene.look() == before
    return GarbageReport(
        cases=kinds.total(),
        by_kind=count(kinds.elements()),
        sentences=sentences[:MOST_SENTENCES],
        **counts,
    )


def _turns(places: list[Place], chance: random.Random) -> Iterator[tuple[Place, str]]:
    """Each place in rotation, with each of its kinds equally often; endless."""
    shuffled = [chance.sample(place.kinds, len(place.kinds)) for place in places]
    kinds = [cycle(item) for item in shuffled]
    for number in cycle(range(len(places))):
        yield places[number], next(kinds[number])


def _wrong(scene: Scene, before: AuditResult) -> Iterator[tuple[str, str]]:
    """Each failure, by its name in the report, with a description."""
    try:
        with _no_longer_than(_SECONDS):
            output = scene.look()
    except Hung:
        yield "hangs", f"no end after {_SECONDS} s"
    except AgentworldError as error:
        yield "hidden", f"the audit ended: {type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - any exception is a finding
        frame = traceback.extract_tb(error.__traceback__)[-1]
        yield "tracebacks", f"{error!r:.200} at {frame.filename}:{frame.lineno}"
    else:
        yield from (("hidden", problem) for problem in sorted(before.problems - output.problems))
        yield from (("hidden", f"the page {page}") for page in output.failed_pages)
        unclear = (problem for problem in sorted(output.problems) if _NO_WORDS.search(problem))
        yield from (("unclear", item[:300]) for item in unclear)


@contextmanager
def _no_longer_than(seconds: int) -> Iterator[None]:
    """Raises Hung in a block that waits that long, as for a pipe, or computes that long.

    A busy machine may let it wait longer: it does not count as hung while it gets some processor
    time.
    """
    start = last = time.process_time()

    def look(*_: object) -> None:
        nonlocal last
        previous, last = last, time.process_time()
        if last - previous < _LEAST_SECONDS or last - start > seconds:
            raise Hung

    old_handler = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old_handler)
