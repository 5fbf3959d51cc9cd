"""Registers a validated agent as a version."""

from pathlib import Path

from agentworld.errors import InputError
from agentworld.lineage.base import Agent
from agentworld.operations.attested import request_edge
from agentworld.operations.registering import register
from agentworld.operations.registry import open_registry, registry_digest
from agentworld.operations.statements import submit
from agentworld.records.base import Digest
from agentworld.records.progress import OnProgress
from agentworld.records.report import AgentReport
from agentworld.records.run import AgentRun
from agentworld.runner.folders import (
    AGENT,
    PRACTICE,
    REPORT,
    RUN,
    Practice,
    TrainedAgent,
    checkpoint_of,
    model_of,
)
from agentworld.runner.task import Plan, Task
from agentworld.storage.receipts import read_receipt


def plan(task: Task) -> Plan:
    """Writes the version and its run.

    Raises InputError if the run or the validation belongs to another agent.
    """
    name, store, weights = task.recipe.agent.name, task.store, task.digests["agent"]
    agent, run_folder, validation = (
        task.folders[step] for step in ("agent", "closed", "validation")
    )
    run = AgentRun.read(run_folder / RUN)
    if run.final_weights != weights:
        raise InputError(f"{run_folder} is of a run that made {run.final_weights}, not {weights}")
    if read_receipt(validation).inputs.get("agent") != weights:
        raise InputError(f"{validation} validated another agent than {agent}; validate this one")

    def work(out: Path, _: OnProgress) -> Digest:
        report = AgentReport.read(validation / REPORT).digest
        registry, checkpoint = open_registry(store), checkpoint_of(agent)
        edge = request_edge(name, checkpoint, run, registry, store)
        record = Agent(checkpoint=checkpoint, run=run.id, report=report, edge=edge)
        version = register(name, record, model_of(agent), registry, store, out)
        practice = Practice.read(agent / PRACTICE)
        result = TrainedAgent(version=version, run=run, live_steps=practice.live_steps)
        result.write(out / AGENT)
        return weights

    inputs = {"registry": registry_digest()}
    return Plan(work, inputs, answer=lambda folder: submit(folder, store))
