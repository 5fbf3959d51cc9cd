"""Mutations by the hundred, each on a fresh copy of one world, and what the audit says of it."""

import itertools
import os
import random
import shutil
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel

from agentworld.audit.evidence import Evidence
from agentworld.audit.intact import verify_ledger
from agentworld.ledger import Ledger
from agentworld.steps.ledger import open_evidence
from agentworld.storage.objects import ObjectStore
from tamper import columns, objects, planted, registry, removed
from tamper.honest import false_alarms
from tamper.mutation import Mutation, opened
from tamper.world import World, build

_MOST_SENTENCES = 20
_SHARE_OF_REGISTRY = 0.1


class Report(BaseModel):
    """One campaign."""

    mutations: int
    found: int
    """Those with a problem that names the right place."""
    misnamed: int
    """Those with problems that all name other places."""
    unfound: int
    false_alarms: int
    """Problems that the audit tells of what nobody touched."""
    records: int
    """Of the world that nobody touched."""
    sentences: list[str]
    """The first of what should not be."""
    by_kind: dict[str, int]
    seed: str
    seconds: float

    @property
    def clean(self) -> bool:
        """Everything is found and named, and nobody is accused."""
        return self.found == self.mutations and not self.false_alarms


def campaign(folder: Path, num_mutations: int, seed: str) -> Report:
    """Builds a world, tampers with copies of it so often, and looks at the untouched one."""
    begun = time.monotonic()
    world = build(folder / "world")
    evidence = open_evidence(world.folder)
    records, alarms = world.num_records, false_alarms(folder, world)
    kinds, wrong, misnamed = Counter[str](), list[str](), 0
    chance = random.Random(seed)
    num_registry = int(num_mutations * _SHARE_OF_REGISTRY)
    of_ledger = _of_ledger(world, folder / "case", evidence, chance)
    of_registry = registry.tampered(folder / "registry", chance)
    for mutation, problems in itertools.chain(
        itertools.islice(of_ledger, num_mutations - num_registry),
        itertools.islice(of_registry, num_registry),
    ):
        kinds[mutation.kind] += 1
        if not any(place in problem for problem in problems for place in mutation.places):
            misnamed += bool(problems)
            said = f"only {problems[0]}" if problems else "nothing"
            wrong.append(f"{mutation.kind} ({mutation.told}): {said}")
    return Report(
        mutations=kinds.total(),
        found=kinds.total() - len(wrong),
        misnamed=misnamed,
        unfound=len(wrong) - misnamed,
        false_alarms=len(alarms),
        records=records,
        sentences=[*alarms, *wrong][:_MOST_SENTENCES],
        by_kind=dict(sorted(kinds.items())),
        seed=seed,
        seconds=round(time.monotonic() - begun, 1),
    )


def _of_ledger(
    world: World, folder: Path, evidence: Evidence, chance: random.Random
) -> Iterator[tuple[Mutation, list[str]]]:
    """One of every kind in turn, each done to a fresh copy of the world; without an end."""
    cases = [*columns.cases(), *removed.cases(world), *planted.cases(), *objects.cases()]
    with opened(world.ledger_file) as database:
        for case in itertools.cycle(cases):
            mutation = case.draw(database, chance)
            while mutation is None or not _is_done(mutation, world, folder):
                mutation = case.draw(database, chance)
            yield mutation, _told_of(folder, evidence)


def _is_done(mutation: Mutation, world: World, folder: Path) -> bool:
    """False where the schema refuses it, and the attacker thinks of another."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(world.ledger_file, folder)
    shutil.copytree(world.folder / "objects", folder / "objects", copy_function=os.link)
    with suppress(sqlite3.IntegrityError):
        mutation.do(folder)
        return True
    return False


def _told_of(folder: Path, evidence: Evidence) -> list[str]:
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}", ObjectStore(str(folder / "objects")))
    try:
        return [*verify_ledger(ledger, evidence).problems]
    finally:
        ledger.close()
