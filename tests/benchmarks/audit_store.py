"""A store of any size: simulators, their agents, runs and signed statements.

Everything equals the output of a job's steps, and verifies; only the insertion is in bulk.
"""

import secrets
import shutil
from pathlib import Path
from typing import NamedTuple

from agentworld.audit.read.evidence import Evidence
from agentworld.ledger.tables import ATTESTATIONS, CHECKPOINTS
from agentworld.lineage.base import Agent, VersionRef, WorldModel
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest, digest_json
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.episode import new_name
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.records.statements.edge import Claim, Edge, SignedEdge
from agentworld.records.statements.genesis import GENESIS
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.records.statements.validation import Validation
from agentworld.signing.checkpoint import checkpoint_name, sign_checkpoint
from agentworld.signing.edge import RunEvidence, join
from agentworld.signing.envelope import attest
from agentworld.signing.keys import SIMULATOR_KEYS, STEP_KEYS, ensure_signer, load_trusted
from agentworld.signing.weights import RunWeights, sign_weights
from agentworld.storage.objects import WriteOnce
from benchmarks.audit_ledger import Book
from benchmarks.audit_registry import BulkRegistry
from make import records

_STARTED = records.digest("imitated")
_DATA = records.digest("data")
_AT = "2026-01-01T00:00:00.000+00:00"
_NUM_NAMES = 100
"""Agents' names; each has a hundredth of the versions."""


class Size(NamedTuple):
    """The size of a store; a tenth of the episodes belongs to one agent."""

    simulators: int
    agents: int
    episodes: int


class Trained(NamedTuple):
    """A trained agent; its run is open if the service is to close it."""

    name: str
    checkpoint: Checkpoint
    run: AgentRun
    closing: RunClosing


class AuditStore:
    """A growing store; `agents` and `simulators` are those for questions."""

    def __init__(self, store: Path, book: Book) -> None:
        self.store = store
        self.agents: list[VersionRef] = []
        self.runs: list[str] = []
        self.simulators: list[Digest] = []
        self.registry = BulkRegistry(store)
        self._book = book
        self._num_episodes = 0
        self._model = store / "model"
        self._model.mkdir()
        self._world_models: dict[Digest, Digest] = {}
        keys = store / "keys"
        self._signer = ensure_signer(keys / SIMULATOR_KEYS)
        self._step_signer = ensure_signer(keys / STEP_KEYS)
        self._copies = store / "mirror"
        trusted_keys, step_keys = (
            load_trusted(keys / name) for name in (SIMULATOR_KEYS, STEP_KEYS)
        )
        self.evidence = Evidence(trusted_keys, WriteOnce(str(self._copies)), step_keys)

    def grow(self, size: Size) -> Trained:
        """Adds the missing rows; returns the agent with a tenth of all episodes, not yet closed."""
        while len(self.simulators) < size.simulators:
            self.simulators.append(self._pin())
        num_large = size.episodes // 10
        num_agents = size.agents - len(self.agents) - 1
        share, remainder = divmod(size.episodes - self._num_episodes - num_large, num_agents)
        for index in range(num_agents):
            self._train(share + (index < remainder))
        # In a simulator without questions: its signed statements differ between ledgers.
        large = self._trained("large-agent", self._pin())
        self._book.write(large.run, num_large)
        self._num_episodes = size.episodes
        self._book.settle()
        self.registry.settle()
        return large

    def forget(self, large: Trained) -> None:
        """Removes its run's statements from the mirror, which differ between ledgers."""
        for folder in (self._copies, self._copies / Edge.folder):
            shutil.rmtree(folder / large.run.id)
        (self._copies / GENESIS).unlink()  # identifies the ledger of an evidence mirror

    def _pin(self) -> Digest:
        """Adds a simulator, and the world model that it serves."""
        stage = {"artifact": records.digest(secrets.token_hex(8)), "data": _DATA}
        cpt = records.checkpoint("cpt", data=_DATA)
        sft = records.checkpoint("sft", data=_DATA, parents=[cpt.artifact])
        rl = records.checkpoint("rl", parents=[sft.artifact], **stage)
        world_model = WorldModel(stages=(cpt, sft, rl), report=records.digest("report"))
        ref = self.registry.register_world_model("agentworld-shell", world_model, self._model)
        self._sign_registration(ref, world_model)
        manifest = records.manifest(artifact=rl.artifact)
        folder = self.store / "simulators" / manifest.digest.removeprefix("sha256:")
        manifest.write(folder / "manifest.json")
        self._world_models[manifest.digest] = rl.artifact
        return manifest.digest

    def _trained(self, name: str, simulator: Digest) -> Trained:
        run = AgentRun(
            id=new_name(),
            opening=RunOpening(agent=name, starting_weights=_STARTED),
            simulator=simulator,
        )
        artifact = records.digest(run.id)
        weights = RunWeights(run=run.id, simulator=run.simulator, weights=artifact)
        signature = sign_weights(weights, self._step_signer)
        parents = {"parents": [_STARTED], "simulator": run.simulator}
        checkpoint = records.checkpoint("agent", artifact=artifact, **parents)
        return Trained(
            name, checkpoint, run, RunClosing(final_weights=artifact, signature=signature)
        )

    def _train(self, num_episodes: int) -> None:
        """Registers an agent with its complete lineage."""
        name = f"agent-{len(self.agents) % _NUM_NAMES:02d}"
        trained = self._trained(name, secrets.choice(self.simulators))
        run = trained.run.model_copy(update={"closing": trained.closing})
        checkpoint = self._book.write(run, num_episodes)
        run = run.model_copy(update={"log_length": checkpoint.length})
        signed_checkpoint = sign_checkpoint(checkpoint, self._signer)
        self._book.add(CHECKPOINTS, (run.id, checkpoint.length, signed_checkpoint))
        self._copy(checkpoint_name(run.id, checkpoint.length), signed_checkpoint)
        edge = join(self._claim(trained), RunEvidence(run, checkpoint), _AT)
        statement = attest(edge, self._signer)
        self._keep(statement)
        agent = Agent(
            checkpoint=trained.checkpoint,
            run=run.id,
            report=self._validate(trained),
            edge=SignedEdge(edge=edge, envelope=statement.envelope.decode()),
        )
        ref = self.registry.register_agent(trained.name, agent, self._model)
        self._sign_registration(ref, agent)
        self.agents.append(ref)
        self.runs.append(run.id)

    def _claim(self, agent: Trained) -> Claim:
        return Claim(
            agent=agent.name,
            artifact=agent.checkpoint.artifact,
            starting_weights=_STARTED,
            simulator=agent.run.simulator,
            world_model=self._world_models[agent.run.simulator],
            data=(_DATA,),
        )

    def _validate(self, agent: Trained) -> Digest:
        report = records.agent_report(simulator=agent.run.simulator)
        artifact = agent.checkpoint.artifact
        inputs = {"agent": artifact, "imitated": _STARTED, "simulator": agent.run.simulator}
        folder = records.finished_step(self.store, "validate", report.digest, **inputs)
        report.write(folder / "report.json")
        fields = {"artifact": artifact, "imitated": _STARTED, "step": folder.name, "at": _AT}
        self._keep(attest(Validation(report=report, **fields), self._step_signer))
        return report.digest

    def _sign_registration(self, ref: VersionRef, model: WorldModel | Agent) -> None:
        statement = RegisteredVersion(
            registered_as=ref.name,
            version=ref.version,
            artifact=model.artifact,
            run=model.run if isinstance(model, Agent) else "",
            record=digest_json(model.model_dump(mode="json")),
            links=self.registry.links[ref],
            at=_AT,
        )
        self._keep(attest(statement, self._step_signer))

    def _keep(self, statement: Attestation) -> None:
        """Stores a statement in the ledger and in the evidence mirror."""
        self._book.add(ATTESTATIONS, statement)
        self._copy(statement.name, statement.envelope)

    def _copy(self, name: str, envelope: bytes) -> None:
        """Writes an envelope as the evidence mirror does, without its syncs."""
        path = self._copies / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(envelope)
