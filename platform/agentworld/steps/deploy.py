"""Points the alias at a simulator that passed its gate; its earlier simulator stays available."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from agentworld.errors import InputError
from agentworld.operations.ledger import ledger_digest
from agentworld.operations.simulators import MoveConditions, set_alias
from agentworld.records.base import Digest, Record
from agentworld.records.gate import Gate
from agentworld.records.progress import OnProgress
from agentworld.records.report import WorldModelReport
from agentworld.runner.folders import DEPLOYED
from agentworld.runner.task import Plan, Task
from agentworld.storage.objects import ObjectStore
from agentworld.storage.simulators import PinnedSimulator
from agentworld.storage.stores import Stores

_BY = "pipeline"


class AliasTarget(NamedTuple):
    """The simulator that an alias should point at."""

    alias: str
    simulator: PinnedSimulator
    conditions: MoveConditions
    """The conditions of the move."""
    key: str
    """The idempotency key of the move: a repeated request moves nothing back."""


class DeployResult(Record):
    """The result of the step."""

    alias: str
    simulator: Digest
    report: Digest | None
    gate: tuple[Gate, ...]
    """The clauses that the report had to meet."""


Serve = Callable[[AliasTarget], None]
"""Serves the simulator, and points the alias at it."""


def plan(task: Task) -> Plan:
    """Writes the target of the recipe's alias, in this store."""

    def set_in_store(target: AliasTarget) -> None:
        digest = target.simulator.digest
        set_alias(target.alias, digest, task.store, _BY, target.conditions, target.key)

    return plan_by(set_in_store, {"ledger": ledger_digest()}, task)


def plan_by(serve: Serve, place: dict[str, Digest], task: Task) -> Plan:
    """The same with any way of serving; `place` identifies it in the step's inputs.

    Raises InputError if the recipe has a gate and no evaluation is attached.
    """
    settings = task.recipe
    pinned = PinnedSimulator.read(Path(task.texts["simulator"]))
    report = pinned.world_report
    conditions = _conditions_of(settings.gate, pinned, report)

    def work(out: Path, _: OnProgress) -> Digest:
        if report:  # where the service that judges the move reads it
            ObjectStore(Stores.objects_url_of(task.store)).put(report.canonical)
        alias = settings.deploy.alias
        serve(AliasTarget(alias, pinned, conditions, key=f"deploy-{out.name}"))
        result = DeployResult(
            alias=alias, simulator=pinned.digest, report=conditions.report, gate=conditions.gate
        )
        result.write(out / DEPLOYED)
        return result.digest

    inputs = {"simulator": pinned.digest, **place}
    if report:
        inputs["report"] = report.digest
    return Plan(work, inputs)


def _conditions_of(
    gates: Sequence[Gate], simulator: PinnedSimulator, report: WorldModelReport | None
) -> MoveConditions:
    """The clauses of a recipe's gate about the stage that made the weights, in the form of an
    alias's gate. The other clauses are about other stages and baselines, and were judged by the
    step `gate`.
    """
    if report is None:
        if gates:
            raise InputError(
                f"no evaluation of {simulator.digest} is attached, and the recipe has a gate;"
                " attach the one that the step evaluate made"
            )
        return MoveConditions()
    own = simulator.digest, simulator.manifest.artifact
    *_, stage = (name for name, artifact in report.artifacts.items() if artifact in own)
    stage_gates = tuple(
        Gate(metric=gate.metric.removeprefix(f"{stage}."), least=gate.least)
        for gate in gates
        if gate.metric.startswith(f"{stage}.")
    )
    return MoveConditions(gate=stage_gates, report=report.digest)
