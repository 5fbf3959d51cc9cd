"""The lineage of an agent: its weights, run, simulator, world model and data.

Each link is read from its original source: the registry, the ledger or the store. Links are
compared, and disagreements are reported.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal, Self

from agentworld.audit.checks.edges import EdgeAudit, as_signed, breaks_of_run, edge_to
from agentworld.audit.checks.mirror import find_rows, verified_pairs
from agentworld.audit.checks.run import RunVerification, verification_of
from agentworld.audit.checks.validation import LiveLink, validation_of
from agentworld.audit.questions.revalidation import AgentsInUse, Revalidation
from agentworld.audit.read.evidence import Finding, Signature
from agentworld.audit.read.sources import Sources, manifest_of
from agentworld.errors import EvidenceError
from agentworld.lineage.base import VersionRef, WorldModel
from agentworld.records.base import Digest, Record, digest_json
from agentworld.records.checkpoint import WORLD_STAGES, Checkpoint, Stage
from agentworld.records.corpus import CorpusUse
from agentworld.records.dataset import DataSet
from agentworld.records.run import AgentRun
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.statements.edge import Grade
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.storage.datasets import readable_dataset
from agentworld.storage.receipts import step_that_made


class StageLink(Record):
    """A training stage of the world model."""

    stage: Stage
    artifact: Digest
    parents: tuple[Digest, ...]
    recipe: Digest
    data: Digest | None
    corpora: dict[str, CorpusUse] = {}
    """The corpora of the stage in addition to that data."""

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> "StageLink":
        """The link of a checkpoint."""
        return cls(
            stage=checkpoint.stage,
            artifact=checkpoint.artifact,
            parents=checkpoint.parents,
            recipe=digest_json(checkpoint.recipe),
            data=checkpoint.data,
            corpora=checkpoint.corpora,
        )


class DataLink(Record):
    """A data set, as its manifest describes it."""

    num_trajectories: int
    domains: tuple[str, ...]
    origin: str
    licences: tuple[str, ...]

    @classmethod
    def of(cls, dataset: DataSet) -> Self:
        """The link of a data set."""
        return cls(
            num_trajectories=dataset.num_trajectories,
            domains=tuple(dataset.domains),
            origin=dataset.origin,
            licences=tuple(dataset.licences),
        )


class BaseLink(Record):
    """A base model of a world model."""

    artifact: Digest
    address: str | None
    """Its download address; null for a folder."""
    world_model: str | None
    """The version that has these weights as a stage; its own base model follows."""
    data: Digest | None = None
    """The data of that version's stage; null if no version has these weights."""


class AgentChain(Finding):
    """The answer to: which simulator, trained on which data, trained this agent?

    Its grade is that of the edge, or `disputed` if the run's record was verified and is broken, or
    `unsigned`. Its problems are links that disagree or cannot be followed; its notes are missing
    links without a contradiction. A complete chain has neither.
    """

    artifact: Digest
    registered_at: datetime | None = None
    """The registry's time."""
    registration: Signature | None = None
    """The signature of the step that registered it; null if unsigned."""
    run: AgentRun
    simulator: Digest
    world_model: str | None
    world_model_artifact: Digest | None
    stages: tuple[StageLink, ...]
    bases: tuple[BaseLink, ...] = ()
    """The base models of the world model's first stage, transitively; empty for a new model."""
    data: Digest | None
    data_set: DataLink | None = None
    """The data set; null if the store does not have it."""
    live: LiveLink | None
    edge: EdgeAudit | None = None
    """The edge to its simulator with its grade; null if the store has no keys."""
    evidence: RunVerification | None = None
    """The verification of the run's record; null if it was not requested, or the store has no
    keys.
    """
    in_use_as: tuple[str, ...] = ()
    revalidate: tuple[Revalidation, ...] = ()
    """The reasons why it has to be revalidated, if it is in use."""
    at: str | None = None
    """The time asked about; null is now. Records are verified as they are now."""


def audit_agent(ref: VersionRef, sources: Sources, *, verify: bool = False) -> AgentChain:
    """The chain of a registered agent; raises NotFound if it is not registered.

    Uses the statements signed at its registration; `verify` reads every step of its run again.
    """
    agent = sources.agent(ref)
    run = sources.run(agent.run)
    manifest = manifest_of(run.simulator, sources.store)
    version, world_model = sources.first_world_model(sources.world_models_of(manifest))
    stages = world_model.stages if world_model else ()
    data = stages[-1].data if stages else None
    bases, base_problems = _bases_of(version, world_model, sources)
    live, changed = None, tuple[str, ...]()
    try:
        validation = validation_of(agent, run.simulator, sources)
        live = LiveLink.of(validation) if validation else None
    except EvidenceError as error:
        changed = (str(error),)
    edge = edge_to(ref.name, agent, sources, run)
    run = as_signed(run, edge)
    evidence = verification_of(run.id, sources) if verify else None
    read = sources.ledger, sources.evidence, sources.store
    use = AgentsInUse.read(*read, ref.name).of(ref, agent)
    breaks = (*breaks_of_run(agent, run), *_breaks_of_stages(stages), *base_problems)
    return AgentChain(
        subject=str(ref),
        grade=_grade(edge, evidence),
        artifact=agent.artifact,
        registered_at=sources.registry.version(ref).at,
        registration=_registration(ref, sources),
        run=run,
        simulator=run.simulator,
        world_model=str(version) if version else None,
        world_model_artifact=manifest.artifact if manifest else None,
        stages=tuple(StageLink.of(stage) for stage in stages),
        bases=bases,
        data=data,
        data_set=_data_set(data, sources),
        live=live,
        edge=edge,
        evidence=evidence,
        in_use_as=use.aliases,
        revalidate=use.revalidate,
        problems=(
            *breaks,
            *(edge.problems if edge else ()),
            *_claim_problems(edge, manifest),
            *_manifest_problems(manifest),
            *changed,
            *(evidence.problems if evidence else ()),
        ),
        notes=(
            *_world_model_problems(manifest, world_model),
            *_unregistered_problems(bases, sources.store),
            *_validation_problems(live, changed),
        ),
        at=sources.moment,
    )


def _grade(edge: EdgeAudit | None, evidence: RunVerification | None) -> Grade | Literal["unsigned"]:
    if edge is None:
        return "unsigned"
    return "disputed" if evidence and evidence.problems else edge.grade


def _registration(ref: VersionRef, sources: Sources) -> Signature | None:
    """The newest registration, if a ledger has one."""
    if sources.evidence is None:
        return None
    rows = find_rows(RegisteredVersion, sources.ledger.attestations, str(ref))
    pairs = verified_pairs(rows, RegisteredVersion, sources.evidence)
    pairs.sort(key=lambda pair: pair[1].at)
    return Signature.of(*pairs[-1]) if pairs else None


def _data_set(data: Digest | None, sources: Sources) -> DataLink | None:
    dataset = readable_dataset(data, sources.store) if data else None
    return DataLink.of(dataset) if dataset else None


def _bases_of(
    version: VersionRef | None, world_model: WorldModel | None, sources: Sources
) -> tuple[tuple[BaseLink, ...], tuple[str, ...]]:
    """The chain of world models up to a base that is not registered here.

    Also the problem that ends the chain: a version that repeats.
    """
    links, versions = list[BaseLink](), {version}
    while world_model:
        first, version, world_model = world_model.stages[0], None, None
        for artifact in first.parents:
            registered = (version.ref for version in sources.world_models_with(artifact))
            version, world_model = sources.first_world_model(registered)
            links.append(_base(artifact, first.base, version, world_model))
        if version in versions:
            return tuple(links), (f"the bases of {version} lead back to {version}",)
        versions.add(version)
    return tuple(links), ()


def _base(
    artifact: Digest, address: str | None, version: VersionRef | None, model: WorldModel | None
) -> BaseLink:
    return BaseLink(
        artifact=artifact,
        address=address,
        world_model=str(version) if version else None,
        data=_data_of(artifact, model) if model else None,
    )


def _data_of(artifact: Digest, model: WorldModel) -> Digest | None:
    """The data of the stage that has these weights."""
    stages = (stage for stage in model.stages if stage.artifact == artifact)
    return next(stages, model.stages[-1]).data


def _unregistered_problems(bases: tuple[BaseLink, ...], store: Path) -> Iterator[str]:
    """Base models that are stages of this store: no signed statement names their data."""
    for base in bases:
        steps = (step_that_made(store, stage, base.artifact) for stage in WORLD_STAGES)
        if base.world_model is None and any(steps):
            yield (
                f"the base {base.artifact} was trained in this store but is not a registered"
                " world model; register it to extend the chain to its data"
            )


def _breaks_of_stages(stages: tuple[Checkpoint, ...]) -> Iterator[str]:
    for before, after in pairwise(stages):
        if before.artifact not in after.parents:
            yield f"{after.stage} does not start from {before.stage} ({before.artifact})"
        if before.data != after.data:
            yield f"{after.stage} read the data {after.data}, {before.stage} {before.data}"


def _manifest_problems(manifest: SimulatorManifest | None) -> Iterator[str]:
    if manifest is None:
        yield "the simulator's manifest is not in the store"


def _world_model_problems(
    manifest: SimulatorManifest | None, world_model: WorldModel | None
) -> Iterator[str]:
    if manifest and manifest.artifact is None:
        yield "the simulator is an external endpoint, whose model cannot be verified"
    elif manifest and world_model is None:
        yield f"no registered world model has the weights {manifest.artifact}"


def _claim_problems(edge: EdgeAudit | None, manifest: SimulatorManifest | None) -> Iterator[str]:
    """Contradictions between the trainer's claim and the simulator's manifest."""
    claim = edge.edge.claim if edge and edge.edge else None
    if claim and manifest and claim.world_model not in (None, manifest.artifact):
        yield f"the edge names the world model {claim.world_model}, the simulator names another"


def _validation_problems(live: LiveLink | None, changed: tuple[str, ...]) -> Iterator[str]:
    if live is None and not changed:
        yield "the agent was not validated live"
