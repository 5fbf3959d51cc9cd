"""Step 16: an agent that was tried in the live shell becomes a version."""

from pathlib import Path

from agentworld.errors import InputError
from agentworld.lineage.base import Agent
from agentworld.operations.attested import attested
from agentworld.operations.registering import registered
from agentworld.operations.registry import open_registry, registry_digest
from agentworld.operations.statements import hand_in
from agentworld.recipes import load_recipe, recipe_path
from agentworld.records.base import Digest
from agentworld.records.progress import Tick
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
from agentworld.runner.remote import anywhere
from agentworld.runner.step import output_of, run_step
from agentworld.storage.receipts import read_receipt


@anywhere("agent")
def register_agent(recipe: str, store: str, agent: str, closed: str, validation: str) -> str:
    """The folder that says which version it is, and of which run.

    Raises InputError where the run made, or the validation tried, another agent.
    """
    settings = load_recipe(recipe_path(recipe))
    weights = output_of(agent)
    proof = {"closed": output_of(closed), "validation": output_of(validation)}
    run = AgentRun.read(Path(closed) / RUN)
    if run.final_weights != weights:
        raise InputError(f"{closed} is of a run that made {run.final_weights}, not {weights}")
    if read_receipt(Path(validation)).inputs.get("agent") != weights:
        raise InputError(f"{validation} validated another agent than {agent}; validate this one")

    def work(out: Path, _: Tick) -> Digest:
        report = AgentReport.read(Path(validation) / REPORT).digest
        registry, checkpoint = open_registry(Path(store)), checkpoint_of(Path(agent))
        edge = attested(settings.agent.name, checkpoint, run, registry, Path(store))
        record = Agent(checkpoint=checkpoint, run=run.id, report=report, edge=edge)
        model = model_of(Path(agent))
        version = registered(settings.agent.name, record, model, registry, Path(store), out)
        practice = Practice.read(Path(agent) / PRACTICE)
        result = TrainedAgent(version=version, run=run, live_steps=practice.live_steps)
        result.write(out / AGENT)
        return weights

    inputs = {"agent": weights, **proof, "registry": registry_digest()}
    folder = run_step(Path(store), "register_agent", [settings.agent], inputs, work)
    return str(hand_in(folder, Path(store)))
