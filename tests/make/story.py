"""A store in which a simulator trained an agent, with signed statements, for tests of audits."""

import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import make.ledger
from agentworld.audit.checks.registration import registration_of
from agentworld.audit.read.evidence import Evidence
from agentworld.audit.read.sources import Sources
from agentworld.ledger import Ledger
from agentworld.ledger.writes import EpisodeOpened, NewStep
from agentworld.lineage.base import Agent, Registry, VersionRef, WorldModel
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.episode import Episode, EpisodeOpening
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.signing.keys import Signer, ensure_signer, load_trusted
from agentworld.signing.registration import sign_registration
from agentworld.signing.weights import RunWeights, sign_weights
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import WriteOnce
from make import records
from make.statement import registered
from make.template import copied

STARTED = records.digest("imitated")
DATA, EARLY_DATA = records.digest("data"), records.digest("early data")
BASE = records.digest("base")


class Story(NamedTuple):
    """The events, and a time after each part of them."""

    sources: Sources
    world_model: VersionRef
    simulator: Digest
    run: AgentRun
    agent: VersionRef
    moments: dict[str, datetime]

    @property
    def store(self) -> Path:
        return self.sources.store

    def at(self, moment: str) -> Sources:
        return self.sources.as_of(self.moments[moment])


def story(store: Path, registry: Registry | None = None, *, signed: bool = True) -> Story:
    """A world model, its simulator, a run of two steps, and the agent from it."""
    if registry is None:
        return copied(_story, store, signed=signed)
    return _story(store, registry, signed=signed)


def _story(store: Path, registry: Registry | None = None, *, signed: bool) -> Story:
    registry = registry or MemoryRegistry()
    ledger = Ledger(make.ledger.laid(f"sqlite:///{store}/ledger.db"))
    signer = ensure_signer(store / "keys/steps")
    moments = {"before": moment()}
    world_model = world_of(_model(store / "world"))
    ref = _registered("world", world_model, store, registry, signed=signed)
    moments["a world"] = moment()
    simulator = records.pinned(store, artifact=world_model.artifact).digest
    run = ledger.open_run(RunOpening(agent="hero", starting_weights=STARTED), simulator)
    moments["a run"] = moment()
    _play(ledger, run)
    artifact = _model(store / "agent")
    signature = sign_weights(RunWeights(run=run.id, simulator=simulator, weights=artifact), signer)
    run = ledger.close_run(run.id, RunClosing(final_weights=artifact, signature=signature))
    moments["weights"] = moment()
    checkpoint = records.checkpoint(
        "agent", artifact=artifact, parents=[STARTED], simulator=simulator
    )
    trained_agent = Agent(checkpoint=checkpoint, run=run.id)
    agent = _registered("hero", trained_agent, store, registry, signed=signed)
    moments["an agent"] = moment()
    evidence = _sealed(store, ledger, simulator)
    sources = Sources(registry, ledger, store, evidence, evidence.step_keys or {})
    return Story(sources, ref, simulator, run, agent, moments)


def without(story: Story, ref: str) -> Story:
    """The same story after the registry lost a version."""
    registry = MemoryRegistry()
    for version in (story.world_model, story.agent):
        model = story.store / ("world" if version == story.world_model else "agent")
        stored = story.sources.registry.stored(version)
        if str(version) == ref:
            continue
        if version == story.world_model:
            entity = story.sources.registry.world_model(version)
            registry.register_world_model(version.name, entity, model, signature=stored.signature)
        else:
            entity = story.sources.registry.agent(version)
            fields = {"signature": stored.signature, "world_model": story.world_model}
            registry.register_agent(version.name, entity, model, **fields)
    return story._replace(sources=story.sources._replace(registry=registry))


def world_of(artifact: Digest) -> WorldModel:
    """A world model whose first stage started from a folder's weights, with other data than the
    next ones.
    """
    cpt = records.checkpoint("cpt", data=EARLY_DATA, parents=[BASE])
    sft = records.checkpoint("sft", data=DATA, parents=[cpt.artifact])
    rl = records.checkpoint("rl", data=DATA, parents=[sft.artifact], artifact=artifact)
    return WorldModel(stages=(cpt, sft, rl), report=records.digest("report"))


def signed_as(name: str, entity: WorldModel | Agent, signer: Signer) -> str:
    return sign_registration(registration_of(name, entity), signer)


def _registered(
    name: str, entity: WorldModel | Agent, store: Path, registry: Registry, *, signed: bool
) -> VersionRef:
    """Registers a version, signed as a step does, or unsigned as in old versions."""
    model = store / ("world" if isinstance(entity, WorldModel) else "agent")
    if signed:
        return registered(name, entity, model, registry, store)
    if isinstance(entity, WorldModel):
        return registry.register_world_model(name, entity, model)
    return registry.register_agent(name, entity, model)


def _model(folder: Path) -> Digest:
    folder.mkdir()
    (folder / "model.safetensors").write_text(str(folder))  # different for each story
    return ArtifactManifest.of(folder).digest


def _play(ledger: Ledger, run: AgentRun) -> None:
    episode = Episode.new("e", run.simulator, EpisodeOpening(run=run.id))
    ledger.write([EpisodeOpened(episode)])
    ledger.write(
        [NewStep(run.id, step) for step in records.episode("[0] ~", "[0] ~", base=episode).steps]
    )


def _sealed(store: Path, ledger: Ledger, simulator: Digest) -> Evidence:
    keys, copies = store / "keys/simulator", WriteOnce(str(store / "mirror"))
    LogCheckpointSigner(ledger, simulator, partial(ensure_signer, keys), copies).seal_all()
    return Evidence(load_trusted(keys), copies, load_trusted(store / "keys/steps"))


def moment() -> datetime:
    """A time that differs, in milliseconds, from those of the previous and the next event."""
    time.sleep(0.001)
    now = datetime.now(UTC)
    time.sleep(0.001)
    return now
