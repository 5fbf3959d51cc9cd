"""Faults of trainings: each training is restarted after a fault, until it succeeds.

The judge compares every start, every end and every result with a training without faults.
"""

import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from campaigns.harness.finding import Finding
from campaigns.harness.journal import Journal
from campaigns.harness.report import FaultReport
from campaigns.harness.schedule import shuffled
from campaigns.training import judge
from campaigns.training.attempts import Outcome, carry_out
from campaigns.training.disk import SmallDisk
from campaigns.training.faulty import Attempt, Fault
from campaigns.training.judge import PROMISES, Result
from campaigns.training.spoiling import SPOILING, spoil
from campaigns.training.trainings import ALL, CPT, Training, prepare

SHARES = {
    "killed": 4,
    "told to end": 2,
    "told and killed": 2,
    "truncated": 2,
    "altered": 2,
    "not a number": 2,
    "disk full": 2,
}
_FAULTS_OF_EACH = 3
_STARTS_WITHOUT_FAULT = 3
"""The most starts that a training without further faults may need; it should need one."""
_DELAY_SECONDS = 0.03
_GRACE_SECONDS = 0.3
_LEFT_BYTES = 100_000


class TrainingReport(FaultReport):
    """The results of trainings under faults."""

    trainings: dict[str, int]
    """Successful trainings, by name."""
    starts: int
    resumed: int
    """Starts that resumed from a checkpoint."""


class _Reference(NamedTuple):
    """A training without faults, in one process."""

    arguments: tuple[str, ...]
    """The arguments of its step."""
    store: Path
    """The content of a new store."""
    result: Result
    num_instants: int
    num_steps: int


class Campaign:
    """Disturbs one training after another."""

    def __init__(self, folder: Path, seed: str, faults_of_each: int) -> None:
        self.folder = folder
        self.findings: list[Finding] = []
        self.num_trainings: Counter[str] = Counter()
        self.num_starts = 0
        self.num_resumed = 0
        self.num_faults = 0
        self._faults_of_each = faults_of_each
        self._chance = random.Random(seed)
        self._faults = Journal(folder / "faults.jsonl")
        self._references: dict[str, _Reference] = {}
        (folder / "logs").mkdir()

    def disturb(self, training: Training, kinds: Iterator[str]) -> None:
        """Starts a training until it succeeds; each of the first starts has a fault."""
        reference = self._reference(training)
        with SmallDisk(self.folder / "disk") as disk:
            shutil.copytree(reference.store, disk.seen / "store")
            for start in range(self._faults_of_each + _STARTS_WITHOUT_FAULT):
                kind = next(kinds) if start < self._faults_of_each else None
                num_ranks = self._chance.randint(1, 3) if start else training.num_ranks
                num_ranks = num_ranks if training.is_of_several else 1
                if self._start(training, reference, disk, num_ranks, kind).succeeded:
                    break
            result = judge.result_of(disk.seen / "store", training.step)
        self.num_trainings[training.name] += 1
        if result is None:
            problem = f"{training.name} did not end well in {_STARTS_WITHOUT_FAULT} starts"
            self.findings.append(Finding("unexplained", problem, training.name))
        else:
            self.findings += judge.judge_result(training, result, reference.result)

    def _start(
        self,
        training: Training,
        reference: _Reference,
        disk: SmallDisk,
        num_ranks: int,
        kind: str | None,
    ) -> Outcome:
        store = disk.seen / "store"
        before = judge.whole_checkpoints(store)
        fault = self._draw(kind, num_ranks, reference) if kind else None
        outcome = self._carry_out(training, reference.arguments, disk, num_ranks, fault)
        disk.empty()
        after = judge.whole_checkpoints(store)
        self.findings += judge.judge_start(outcome, disk.folder / "store", before)
        self.findings += judge.judge_end(outcome, after)
        self.num_resumed += bool(before and outcome.steps)
        if outcome.fault and kind:
            self._note(training, kind, spoil(store, kind, self._chance) if kind in SPOILING else "")
        return outcome

    def _note(self, training: Training, kind: str, spoiled: str | None) -> None:
        if spoiled is None:  # no checkpoint yet
            kind, spoiled = "killed", ""
        self.num_faults += 1
        self._faults.write(kind=kind, training=training.name, spoiled=spoiled)

    def _draw(self, kind: str, num_ranks: int, reference: _Reference) -> Fault:
        rank = self._chance.randrange(num_ranks)
        first, last = 1, reference.num_steps if rank else reference.num_instants
        if kind in SPOILING:  # while there is a checkpoint
            first, last = last // 3, last // 2
        elif kind not in ("killed", "told and killed"):  # while it trains
            first, last = 1 + last // 6, last // 2
        seconds = {"told and killed": _GRACE_SECONDS, "killed": _DELAY_SECONDS}.get(kind, 0.0)
        return Fault(
            "killed" if kind in SPOILING else kind,
            rank,
            self._chance.randint(first, last),
            self._chance.choice([0.0, self._chance.uniform(0, seconds)]),
            self._chance.randrange(_LEFT_BYTES),
        )

    def _carry_out(
        self,
        training: Training,
        arguments: tuple[str, ...],
        disk: SmallDisk,
        num_ranks: int,
        fault: Fault | None,
    ) -> Outcome:
        self.num_starts += 1
        attempt = Attempt(
            disk.pid,
            self.folder / "journal.jsonl",
            training.name,
            self.num_starts,
            training.step,
            arguments,
            training.is_of_several,
            fault,
        )
        return carry_out(attempt, num_ranks, self.folder / "logs")

    def _reference(self, training: Training) -> _Reference:
        """Runs a training once without faults."""
        if training.name in self._references:
            return self._references[training.name]
        folder, store = self.folder / "disk", self.folder / "stores" / training.name
        parent = self._trained_cpt() if training.step == "sft" else None
        arguments = prepare(training, store, parent)
        arguments = tuple(word.replace(str(store), str(folder / "store")) for word in arguments)
        with SmallDisk(folder) as disk:
            shutil.copytree(store, disk.seen / "store")
            outcome = self._carry_out(training, arguments, disk, 1, None)
            result = judge.result_of(disk.seen / "store", training.step)
            assert result, outcome.logs[0].read_text()
            if training == CPT:
                shutil.copytree(disk.seen / "store/steps/cpt", self.folder / "trained")
        (end,) = (line for line in outcome.lines if line["kind"] == "end")
        reference = _Reference(arguments, store, result, end["instants"], len(outcome.steps))
        self._references[training.name] = reference
        return reference

    def _trained_cpt(self) -> Path:
        """The folder of the step whose result SFT starts from."""
        self._reference(CPT)
        (folder,) = (path for path in (self.folder / "trained").iterdir() if path.is_dir())
        return folder


def run(
    folder: Path,
    num_faults: int,
    seed: str,
    trainings: Sequence[Training] = ALL,
    shares: Mapping[str, int] = SHARES,
    faults_of_each: int = _FAULTS_OF_EACH,
) -> TrainingReport:
    """Disturbs the trainings in rotation until there were `num_faults` faults."""
    start = time.monotonic()
    folder.mkdir(parents=True)
    campaign, kinds = Campaign(folder, seed, faults_of_each), shuffled(shares, seed)
    for training in cycle(trainings):
        campaign.disturb(training, kinds)
        if campaign.num_faults >= num_faults:
            break
    return TrainingReport.of(
        folder,
        campaign.findings,
        PROMISES,
        seed=seed,
        seconds=round(time.monotonic() - start, 1),
        trainings=dict(campaign.num_trainings),
        starts=campaign.num_starts,
        resumed=campaign.num_resumed,
    )
