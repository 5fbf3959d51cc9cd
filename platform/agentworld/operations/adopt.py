"""Registers agents of third-party trainers: weights that a run made, by their maker's claim.

Nothing is undone: if the run was closed with other weights, the version is disputed.
"""

import asyncio
import shutil
from contextlib import closing
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agentworld.errors import Conflict, InputError
from agentworld.lineage.base import Agent, VersionRef
from agentworld.operations.attested import request_edge
from agentworld.operations.ledger import existing_ledger
from agentworld.operations.registering import register
from agentworld.operations.registry import open_registry, registry_digest
from agentworld.operations.serving import deployed_service
from agentworld.operations.statements import submit
from agentworld.records.base import Digest, Record, first_problem
from agentworld.records.checkpoint import ArtifactManifest, Checkpoint, model_files
from agentworld.records.progress import OnProgress
from agentworld.records.run import AgentRun
from agentworld.records.statements.alias import AgentName
from agentworld.records.statements.edge import Grade
from agentworld.runner.folders import CHECKPOINT, model_of
from agentworld.runner.step import run_step
from agentworld.storage.model_folder import check_safe
from agentworld.storage.weights import num_parameters

ADOPTED = "adopted.json"

_NAME: TypeAdapter[str] = TypeAdapter(AgentName)


class AdoptionResult(Record):
    """The registered version of a third-party trainer's weights."""

    version: VersionRef
    run: AgentRun
    grade: Grade
    """The grade of its edge, as signed."""
    reasons: tuple[str, ...]
    """Why it is disputed."""


class _AdoptionRequest(Record):
    """The inputs of the step."""

    name: str
    run: str


def adopt(store: str, model: str, run: str, name: str) -> str:
    """Returns the folder of the agent and of its version, with a copy of the files.

    Raises InputError for a folder without a model, and Conflict for a run that is open.
    """
    parameters = _check_model(Path(model), name)
    agent_run = _run(run, Path(store))
    if agent_run.closing is None:
        raise Conflict(f"run {run} is open; close it with the weights that it made, then adopt")
    artifact = ArtifactManifest.of(Path(model)).digest
    checkpoint = Checkpoint(
        stage="agent",
        artifact=artifact,
        num_parameters=parameters,
        recipe={},
        parents=(agent_run.opening.starting_weights,),
        simulator=agent_run.simulator,
    )

    def work(out: Path, on_progress: OnProgress) -> Digest:
        _copy(Path(model), model_of(out), artifact, on_progress)
        checkpoint.write(out / CHECKPOINT)
        registry = open_registry(Path(store))
        edge = request_edge(name, checkpoint, agent_run, registry, Path(store))
        agent = Agent(checkpoint=checkpoint, run=run, edge=edge)
        version = register(name, agent, model_of(out), registry, Path(store), out)
        verdict = {"grade": edge.edge.grade, "reasons": edge.edge.reasons}
        AdoptionResult(version=version, run=agent_run, **verdict).write(out / ADOPTED)
        return artifact

    inputs = {"model": artifact, "run": agent_run.digest, "registry": registry_digest()}
    folder = run_step(Path(store), "adopt", [_AdoptionRequest(name=name, run=run)], inputs, work)
    return str(submit(folder, Path(store)))


def _check_model(model: Path, name: str) -> int:
    """The number of its parameters."""
    try:
        _NAME.validate_python(name)
    except ValidationError as error:
        raise InputError(
            f"an agent cannot be named {name!r}; correct {first_problem(error)}"
        ) from error
    check_safe(model)
    return num_parameters(model)


def _run(run: str, store: Path) -> AgentRun:
    """The run as the service that answered its steps recorded it."""
    if client := deployed_service():

        async def fetch_run() -> AgentRun:
            try:
                return await client.resume_run(run)
            finally:
                await client.close()

        return asyncio.run(fetch_run())
    with closing(existing_ledger(store)) as ledger:
        return ledger.run(run)


def _copy(model: Path, to: Path, artifact: Digest, on_progress: OnProgress) -> None:
    shutil.rmtree(to, ignore_errors=True)  # an incomplete copy of a killed step
    for name, path in model_files(model).items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to / name)
    if ArtifactManifest.of(to, on_progress).digest != artifact:
        raise InputError(
            f"{model} changed while it was read; adopt it when no program writes to it"
        )
