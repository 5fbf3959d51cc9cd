"""One campaign: batches of faults for working operators, each followed by a quiet period and a
judgement.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import make.operator
from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.errors import ClusterError
from agentworld_operator.cache import WATCHED
from campaigns.harness.finding import Finding, mistakes
from campaigns.harness.journal import read
from campaigns.harness.processes import until
from campaigns.harness.report import FaultReport, count
from campaigns.harness.schedule import shuffled
from campaigns.operator.built import otherwise
from campaigns.operator.chaos import SHARES, rage
from campaigns.operator.crew import Crew
from campaigns.operator.judge import PROMISES, judge, unlike
from campaigns.operator.people import People
from campaigns.operator.place import RENEWAL_SECONDS, Place
from campaigns.operator.snapshot import look
from campaigns.operator.stalls import read_stalls
from campaigns.operator.usurping import usurped
from machines import control_plane
from make.operator import older_budgets
from waiting import DEADLINE

_BATCH = 50
_CONTROL_SECONDS = 25.0
_QUIET_SECONDS = 3.0
_OUR_CODE = ("operators/agentworld_operator/", "platform/agentworld/")
"""Kopf logs tracebacks of its own before it retries."""


class OperatorReport(FaultReport):
    """The report of one campaign over operators."""

    diverged: int
    """Objects with findings: their state did not match their spec a while after the last fault, or
    they broke another promise.
    """
    converge_seconds: list[float]
    """From the last fault of each batch."""
    controllers: int
    """Restarts of Kubernetes' own controllers after they had missed changes."""
    objects: int
    """Judged objects, over all batches."""
    moves: dict[str, int]
    """Moves of aliases, by the response."""
    deeds: int
    """Successful actions of users."""
    refused: int
    """Refused actions of users, mostly because their object was missing."""
    writes: int
    """Writes of the operators, without leases."""
    lives: dict[str, int]
    """Starts of each process."""


def run(
    folder: Path, num_faults: int, seed: str, shares: Mapping[str, int] = SHARES
) -> OperatorReport:
    """Runs a campaign with its own cluster."""
    folder.mkdir(parents=True)
    with older_budgets(), control_plane.running(folder) as cluster:
        make.operator.define(cluster)
        namespace = make.operator.new_namespace(cluster)
        place = Place(folder, cluster, namespace, make.operator.token(namespace))
        faults = [*islice(shuffled(shares, seed), num_faults)]
        return asyncio.run(Campaign(place, seed).wage(faults))


class Campaign:
    """The state of a campaign."""

    def __init__(self, place: Place, seed: str) -> None:
        self._place = place
        self._seed = seed
        self._crew = Crew(place, seed)
        self._people = People(self._crew, seed)
        self._findings: list[Finding] = []
        self._seconds: list[float] = []
        self._num_judged = 0
        self._num_seen = 0
        self._controllers = 0

    async def wage(self, faults: Sequence[str]) -> OperatorReport:
        """Returns when all processes have ended."""
        start = time.monotonic()
        async with self._crew.working():
            await asyncio.to_thread(self._people.begin)
            for first in range(0, len(faults), _BATCH):
                async with asyncio.TaskGroup() as group:
                    work = group.create_task(self._people.work())
                    await rage(self._crew, faults[first : first + _BATCH], f"{self._seed} {first}")
                    await self._names_move()
                    work.cancel()
                await self._judge()
                if self._findings:
                    break  # further findings would have the same cause
        logs = [item.program.log for item in self._crew.programs]
        self._findings += mistakes(logs, _OUR_CODE)
        return self._report(time.monotonic() - start)

    async def _names_move(self) -> None:
        """Waits until users can move aliases again after the last fault."""
        num_before = self._people.num_moved
        await until(lambda: self._people.num_moved > num_before, "no name moves")

    async def _judge(self) -> None:
        """The state is as specified, and stays so without a write."""
        start = time.monotonic()
        for api in self._crew.api.values():
            api.calm()
        findings, is_restarted = await self._unsettled(), False
        while findings and (elapsed := time.monotonic() - start) < DEADLINE:
            if elapsed > _CONTROL_SECONDS and not is_restarted and _of_others(findings):
                self._control_anew()
                is_restarted = True
            await asyncio.sleep(0.5)
            findings = await self._unsettled()
        self._seconds.append(round(time.monotonic() - start, 1))
        self._num_judged += self._num_seen
        self._findings += findings
        writes = [item for api in self._crew.api.values() for item in api.written]
        stalls = read_stalls(self._place.stalls)
        for finding in usurped(writes, stalls, RENEWAL_SECONDS):
            subject = f"{finding.what} at {finding.sent:.1f}"
            self._findings.append(
                unlike("usurped", subject, "a write of who leads", finding.replica)
            )

    def _control_anew(self) -> None:
        """After the death of their API server, Kubernetes' own controllers may miss changes, or
        wait minutes for a lost response; a restart fixes that.
        """
        controllers = self._place.cluster.controllers
        assert controllers
        controllers.kill()
        controllers.start()
        self._controllers += 1

    async def _unsettled(self) -> list[Finding]:
        """The present findings, or else a finding for each write without a change."""
        if findings := await self._found():
            return findings
        num_before = len(self._writes())
        await asyncio.sleep(_QUIET_SECONDS)
        late_writes = self._writes()[num_before:]
        return [unlike("restless", description, "still", "written") for description in late_writes]

    async def _found(self) -> list[Finding]:
        """The present findings."""
        place = self._place
        try:
            snapshot = await asyncio.to_thread(look, place.namespace, place.ledger, place.folder)
        except ClusterError as error:
            return [unlike("mistaken", "API server", "answers", str(error))]
        self._num_seen = len(snapshot.simulators) + len(snapshot.aliases)
        watched = self._crew.api[self._crew.leader].watched
        unwatched = {API_RESOURCES[kind].plural for kind in WATCHED} - watched
        blind_findings = [
            unlike("blind", kind, "watched", "not watched") for kind in sorted(unwatched)
        ]
        return [*judge(snapshot), *otherwise(snapshot), *blind_findings]

    def _writes(self) -> list[str]:
        """The writes of all replicas, the oldest first."""
        writes = [item for api in self._crew.api.values() for item in api.written]
        ordered = sorted(writes, key=lambda write: write.sent)
        return [item.what for item in ordered if item.matter == "write"]

    def _report(self, seconds: float) -> OperatorReport:
        return OperatorReport.of(
            self._place.folder,
            self._findings,
            PROMISES,
            seed=self._seed,
            seconds=round(seconds, 1),
            diverged=diverged(self._findings),
            controllers=self._controllers,
            converge_seconds=self._seconds,
            objects=self._num_judged,
            moves=count(line["outcome"] for line in read(self._place.folder / "moves.jsonl")),
            deeds=self._people.done,
            refused=self._people.refused,
            writes=len(self._writes()),
            lives={item.program.name: item.program.lives for item in self._crew.programs},
        )


def diverged(findings: list[Finding]) -> int:
    """The number of objects with findings."""
    return len({finding.subject for finding in findings})


def _of_others(findings: list[Finding]) -> bool:
    """Whether the operator is done, and only Kubernetes' own controllers are late."""
    return any(finding.kind in ("left over", "unrun") for finding in findings)
