"""Mutations by the hundred, each of one world as it was, and what the audit says of them."""

import itertools
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel
from sqlalchemy.exc import DataError, IntegrityError

from agentworld.audit.deployments import deployment_problems
from agentworld.audit.evidence import Evidence
from agentworld.audit.intact import readable, verify_ledger
from agentworld.ledger import Ledger
from tamper import columns, declared, deployed, filed, objects, planted, registry, removed
from tamper.honest import false_alarms
from tamper.mutation import Case, Mutation
from tamper.world import World

_MOST_SENTENCES = 20
_UNTOUCHED = "untouched"


class Share(BaseModel):
    """What became of some mutations, and of what nobody touched."""

    mutations: int = 0
    found: int = 0
    """Those with a problem that names the right place."""
    misnamed: int = 0
    """Those with problems that all name other places."""
    unfound: int = 0
    false_alarms: int = 0
    """Problems that the audit tells of what nobody touched."""
    records: int = 0
    """Of the world that nobody touched."""
    sentences: list[str] = []
    """The first of what should not be."""
    by_kind: dict[str, int] = {}

    @property
    def clean(self) -> bool:
        """Everything is found and named, and nobody is accused."""
        return self.found == self.mutations and not self.false_alarms

    @classmethod
    def sum(cls, shares: Iterable["Share"]) -> "Share":
        """All of them together."""
        shares, kinds = [*shares], Counter[str]()
        for share in shares:
            kinds.update(share.by_kind)
        numbers = ("mutations", "found", "misnamed", "unfound", "false_alarms", "records")
        told = {name: sum(getattr(share, name) for share in shares) for name in numbers}
        sentences = [each for share in shares for each in share.sentences]
        return cls(
            **told, sentences=sentences[:_MOST_SENTENCES], by_kind=dict(sorted(kinds.items()))
        )


def of_ledger(world: World, num_mutations: int, seed: str) -> Share:
    """Tampers so often with a world's ledger and objects, which are as they were after it.

    Of every kind as often, but for one.
    """
    return _told(itertools.islice(_tampered(world, random.Random(seed)), num_mutations))


def of_registry(folder: Path, num_mutations: int, seed: str) -> Share:
    """The same of MLflow, beside a ledger that nobody touches, in a new folder."""
    chance = random.Random(seed)
    return _told(itertools.islice(registry.tampered(folder, chance), num_mutations))


def of_honest(world: World) -> Share:
    """A world that goes on."""
    records, alarms = world.num_records, false_alarms(world)
    return Share(records=records, false_alarms=len(alarms), sentences=alarms[:_MOST_SENTENCES])


def all_cases(world: World) -> list[Case]:
    """One of every kind."""
    known = deployed.cases(world.evidence.trusted), declared.cases(world)
    return [
        *columns.cases(),
        *removed.cases(world),
        *planted.cases(),
        *objects.cases(),
        *filed.cases(),
        *itertools.chain(*known),
    ]


def _told(tampered: Iterable[tuple[Mutation, list[str]]]) -> Share:
    kinds, wrong, misnamed = Counter[str](), list[str](), 0
    for mutation, problems in tampered:
        kinds[mutation.kind] += 1
        if not any(place in problem for problem in problems for place in mutation.places):
            misnamed += bool(problems)
            said = f"only {problems[0]}" if problems else "nothing"
            wrong.append(f"{mutation.kind} ({mutation.told}): {said}")
    return Share(
        mutations=kinds.total(),
        found=kinds.total() - len(wrong),
        misnamed=misnamed,
        unfound=len(wrong) - misnamed,
        sentences=wrong[:_MOST_SENTENCES],
        by_kind=dict(kinds),
    )


def _tampered(world: World, chance: random.Random) -> Iterator[tuple[Mutation, list[str]]]:
    """One of every kind in turn, each done to the world as it was; without an end."""
    cases = all_cases(world)
    chance.shuffle(cases)
    world.database.keep(_UNTOUCHED)
    world.objects.rename(world.folder / _UNTOUCHED)
    _undo(world)
    ledger, evidence = world.ledger(), world.evidence
    try:
        for case in itertools.cycle(cases):
            mutation = _done(case, world, chance)
            yield mutation, _problems(world, ledger, evidence)
            _undo(world)
    finally:
        ledger.close()


def _problems(world: World, ledger: Ledger, evidence: Evidence) -> list[str]:
    try:
        used = deployment_problems(world.sources(ledger))
        return [*verify_ledger(ledger, evidence).problems, *readable("what is in use", used)]
    except Exception as error:  # noqa: BLE001 - an audit that ends so tells nothing
        return [f"the audit ended: {error!r}"]


def _done(case: Case, world: World, chance: random.Random) -> Mutation:
    """What the schema refuses, or changes nothing, is drawn again."""
    while True:
        with world.database.hand() as hand:
            mutation = case.draw(hand, chance)
        if mutation is not None:
            with suppress(IntegrityError, DataError):
                mutation.do(world)
                return mutation


def _undo(world: World) -> None:
    world.database.put_back(_UNTOUCHED)
    shutil.rmtree(world.objects, ignore_errors=True)
    shutil.copytree(world.folder / _UNTOUCHED, world.objects, copy_function=os.link)
