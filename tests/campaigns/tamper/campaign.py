"""Hundreds of mutations, each of an unchanged world, and the audit's findings.

Over both databases and MLflow, in as many processes as the machine has cores.
"""

import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial, reduce
from multiprocessing import get_context
from pathlib import Path

from sqlalchemy.exc import DataError, IntegrityError

from agentworld.audit.checks.alias_mirror import registry_problems
from agentworld.audit.checks.ledger import readable, verify_ledger
from agentworld.audit.read.evidence import Evidence
from agentworld.ledger import Ledger
from campaigns.harness.report import MOST_SENTENCES, Report, count
from campaigns.tamper import columns, objects, planted, registry, removed, statements
from campaigns.tamper.honest import false_alarms
from campaigns.tamper.mutation import Draw, Drawn, Mutation
from campaigns.tamper.story import build
from campaigns.tamper.world import World
from machines import postgres

_PARTS = 4
"""Parts of each ledger's mutations, which balances the cores."""
_SHARE_OF_REGISTRY = 0.1
_UNTOUCHED = "untouched"
Tampered = tuple[str, Mutation, list[str]]
"""Its kind, and the audit's findings."""

LEDGER_MUTATIONS: dict[str, Drawn] = {
    **columns.MUTATIONS,
    **removed.MUTATIONS,
    **planted.MUTATIONS,
    **objects.MUTATIONS,
    **statements.MUTATIONS,
}


class TamperReport(Report):
    """The results for mutations, and for unchanged worlds."""

    mutations: int = 0
    found: int = 0
    """Mutations with a finding that names the right place."""
    misnamed: int = 0
    """Mutations whose findings all name other places."""
    unfound: int = 0
    false_alarms: int = 0
    """Findings in unchanged worlds."""
    records: int = 0
    """Records of the unchanged world."""
    by_database: dict[str, "TamperReport"] = {}
    """By database; MLflow's is SQLite, and the ledger beside it is not changed."""

    @property
    def clean(self) -> bool:
        """Whether every mutation is found and named, without false alarms."""
        return self.found == self.mutations and not self.false_alarms


def run(folder: Path, num_mutations: int, seed: str) -> TamperReport:
    """`num_mutations` over SQLite, as many over PostgreSQL, and a tenth of that in MLflow.

    Each part has its own world.
    """
    start, num_registry = time.monotonic(), int(num_mutations * _SHARE_OF_REGISTRY)
    works: list[Callable[[World], TamperReport]] = [of_honest]
    for part in range(_PARTS):
        num_part_mutations = (num_mutations * (part + 1)) // _PARTS - (
            num_mutations * part
        ) // _PARTS
        works.append(partial(of_ledger, num_mutations=num_part_mutations, seed=f"{seed} {part}"))
    with (
        postgres.running() as server,
        ExitStack() as databases,
        ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool,
    ):
        parts = {"mlflow": [pool.submit(of_registry, folder / "mlflow", num_registry, seed)]}
        for name in ("sqlite", "postgresql"):
            parts[name] = []
            for number, work in enumerate(works):
                url = "" if name == "sqlite" else databases.enter_context(server.database())
                parts[name].append(pool.submit(_built, folder / f"{name}-{number}", url, work))
        reports = {
            name: reduce(TamperReport.plus, (item.result() for item in part))
            for name, part in parts.items()
        }
    report = reduce(TamperReport.plus, reports.values())
    seconds = round(time.monotonic() - start, 1)
    return report.model_copy(update={"by_database": reports, "seed": seed, "seconds": seconds})


def _built(folder: Path, url: str, work: Callable[[World], TamperReport]) -> TamperReport:
    return work(build(folder, url))


def of_ledger(world: World, num_mutations: int, seed: str) -> TamperReport:
    """Mutates a world's ledger and objects, and restores them after each.

    Every kind equally often, give or take one.
    """
    return _judged(itertools.islice(_tampered(world, random.Random(seed)), num_mutations))


def of_registry(folder: Path, num_mutations: int, seed: str) -> TamperReport:
    """The same for MLflow, beside an unchanged ledger, in a new folder."""
    chance = random.Random(seed)
    return _judged(itertools.islice(registry.tampered(folder, chance), num_mutations))


def of_honest(world: World) -> TamperReport:
    """The findings in an active, honest world."""
    records, alarms = world.num_records, false_alarms(world)
    return TamperReport(
        records=records, false_alarms=len(alarms), sentences=alarms[:MOST_SENTENCES]
    )


def _judged(results: Iterable[Tampered]) -> TamperReport:
    kinds, misses = Counter[str](), {"misnamed": 0, "unfound": 0}
    sentences = []
    for kind, mutation, problems in results:
        kinds[kind] += 1
        if not any(place in problem for problem in problems for place in mutation.places):
            misses["misnamed" if problems else "unfound"] += 1
            findings = f"only {problems[0]}" if problems else "nothing"
            sentences.append(f"{kind} ({mutation.detail}): {findings}")
    return TamperReport(
        mutations=kinds.total(),
        found=kinds.total() - sum(misses.values()),
        sentences=sentences[:MOST_SENTENCES],
        by_kind=count(kinds.elements()),
        **misses,
    )


def _tampered(world: World, chance: random.Random) -> Iterator[Tampered]:
    """One mutation of every kind in rotation, each of the unchanged world; endless."""
    kinds = [*LEDGER_MUTATIONS]
    chance.shuffle(kinds)
    world.database.keep(_UNTOUCHED)
    world.objects.rename(world.folder / _UNTOUCHED)
    _undo(world)
    ledger, evidence = world.ledger(), world.evidence
    try:
        for kind in itertools.cycle(kinds):
            mutation = _done(LEDGER_MUTATIONS[kind], world, chance)
            yield kind, mutation, _problems(world, ledger, evidence)
            _undo(world)
    finally:
        ledger.close()


def _problems(world: World, ledger: Ledger, evidence: Evidence) -> list[str]:
    try:
        use_problems = registry_problems(world.sources(ledger))
        return [
            *verify_ledger(ledger, evidence).problems,
            *readable("what is in use", use_problems),
        ]
    except Exception as error:  # noqa: BLE001 - an audit that fails has no findings
        return [f"the audit ended: {error!r}"]


def _done(draw_mutation: Drawn, world: World, chance: random.Random) -> Mutation:
    """Draws again if the schema refuses it, or if it changes nothing."""
    while True:
        with world.database.hand() as hand:
            mutation = draw_mutation(Draw(world, hand, chance))
        if mutation is not None:
            with suppress(IntegrityError, DataError):
                mutation.do(world)
                return mutation


def _undo(world: World) -> None:
    """Links a changed or removed object again."""
    world.database.put_back(_UNTOUCHED)
    untouched = world.folder / _UNTOUCHED
    for path in untouched.glob("*/*"):
        path_in_world = world.objects / path.relative_to(untouched)
        if not (path_in_world.exists() and path_in_world.samefile(path)):
            path_in_world.parent.mkdir(parents=True, exist_ok=True)
            path_in_world.unlink(missing_ok=True)
            os.link(path, path_in_world)
