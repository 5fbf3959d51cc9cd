"""One campaign: batches of faults over operators at work, after each of them quiet, and a judge."""

import asyncio
import time
from pathlib import Path

import control_plane
import make_operator
from agentworld.errors import ClusterError
from agentworld_operator.resources.places import PLACES
from agentworld_operator.watched import WATCHED
from faults.journal import read
from faults_operator.built import otherwise
from faults_operator.chaos import deck, rage
from faults_operator.crew import Crew
from faults_operator.finding import Finding
from faults_operator.judge import judge
from faults_operator.mistakes import mistakes
from faults_operator.people import People
from faults_operator.place import RENEWAL_SECONDS, Place
from faults_operator.report import Report, counted, diverged, sentences
from faults_operator.seen import Seen, look
from faults_operator.usurping import usurped
from make_operator import OLDER_BUDGETS

_BATCH = 50
_CONVERGE_SECONDS = 60.0
_CONTROL_SECONDS = 25.0
_QUIET_SECONDS = 3.0


def campaign(folder: Path, num_faults: int, seed: str) -> Report:
    """With a cluster of its own."""
    folder.mkdir(parents=True)
    PLACES["PodDisruptionBudget"] = OLDER_BUDGETS
    with control_plane.running(folder) as cluster:
        make_operator.define(cluster)
        namespace = make_operator.new_namespace(cluster)
        place = Place(folder, cluster, namespace, make_operator.token(namespace))
        return asyncio.run(Campaign(place, num_faults, seed).wage())


class Campaign:
    """What is known so far."""

    def __init__(self, place: Place, num_faults: int, seed: str) -> None:
        self._place = place
        self._num_faults = num_faults
        self._seed = seed
        self._crew = Crew(place, seed)
        self._people = People(self._crew, seed)
        self._findings: list[Finding] = []
        self._seconds: list[float] = []
        self._objects: list[int] = []
        self._num_seen = 0
        self._controllers = 0

    async def wage(self) -> Report:
        """Returns when nothing runs any more."""
        began, faults = time.monotonic(), deck(self._num_faults, self._seed)
        async with self._crew.working():
            await asyncio.to_thread(self._people.begin)
            for first in range(0, len(faults), _BATCH):
                async with asyncio.TaskGroup() as group:
                    working = group.create_task(self._people.work())
                    await rage(self._crew, faults[first : first + _BATCH], f"{self._seed} {first}")
                    working.cancel()
                await self._judge()
                if self._findings:
                    break  # what comes after would only be about the same
        self._findings += mistakes(self._place.folder)
        return self._report(time.monotonic() - began)

    async def _judge(self) -> None:
        """Everything is as it should be, and stays so without a write."""
        began = time.monotonic()
        for api in self._crew.api.values():
            api.calm()
        findings, anew = await self._unsettled(), False
        while findings and (passed := time.monotonic() - began) < _CONVERGE_SECONDS:
            if passed > _CONTROL_SECONDS and not anew and _of_others(findings):
                self._control_anew()
                anew = True
            await asyncio.sleep(0.5)
            findings = await self._unsettled()
        self._seconds.append(round(time.monotonic() - began, 1))
        self._objects.append(self._num_seen)
        self._findings += findings
        written = [each for api in self._crew.api.values() for each in api.written]
        for each in usurped(written, self._crew.stops, RENEWAL_SECONDS):
            about = f"{each.what} at {each.sent:.1f}"
            self._findings.append(Finding("usurped", about, "a write of who leads", each.replica))

    def _control_anew(self) -> None:
        """Where their API server died, Kubernetes' own controllers may forget what they owe, or
        wait minutes for an answer that never came; as they begin anew they know.
        """
        controllers = self._place.cluster.controllers
        assert controllers
        controllers.kill()
        controllers.start()
        self._controllers += 1

    async def _unsettled(self) -> list[Finding]:
        """What is wrong now, or else what is written though nothing changes any more."""
        if findings := await self._found():
            return findings
        before = len(self._writes())
        await asyncio.sleep(_QUIET_SECONDS)
        written = self._writes()[before:]
        return [Finding("restless", what, "still", "written") for what in written]

    async def _found(self) -> list[Finding]:
        """What is wrong now."""
        try:
            seen = await asyncio.to_thread(self._look)
        except ClusterError as error:
            return [Finding("mistaken", "API server", "answers", str(error))]
        self._num_seen = len(seen.simulators) + len(seen.aliases)
        watched = self._crew.api[self._crew.leader].watched
        blind = {PLACES[kind].plural for kind in WATCHED} - watched
        unseen = [Finding("blind", kind, "watched", "not watched") for kind in sorted(blind)]
        return [*judge(seen), *otherwise(seen), *unseen]

    def _look(self) -> Seen:
        place = self._place
        return look(place.namespace, place.ledger, place.folder)

    def _writes(self) -> list[str]:
        """Of all replicas, the oldest first."""
        written = [each for api in self._crew.api.values() for each in api.written]
        ordered = sorted(written, key=lambda each: each.sent)
        return [each.what for each in ordered if each.matter == "write"]

    def _report(self, seconds: float) -> Report:
        folder, crew = self._place.folder, self._crew
        moves = [line["outcome"] for line in read(folder / "moves.jsonl")]
        kept = [*crew.operators.values(), crew.service]
        return Report(
            faults=crew.num_faults,
            diverged=diverged(self._findings),
            seed=self._seed,
            sentences=sentences(self._findings, self._num_faults, self._seed, folder),
            batches=len(self._seconds),
            controllers=self._controllers,
            converge_seconds=self._seconds,
            objects=sum(self._objects),
            moves=counted(moves),
            deeds=self._people.done,
            refused=self._people.refused,
            writes=len(self._writes()),
            lives={each.program.name: each.program.lives for each in kept},
            by_kind=counted([line["kind"] for line in read(folder / "faults.jsonl")]),
            seconds=round(seconds, 1),
        )


def _of_others(findings: list[Finding]) -> bool:
    """Whether something is as the operator wants it, and Kubernetes' own controllers are late."""
    return any(each.kind in ("left over", "unrun") for each in findings)
