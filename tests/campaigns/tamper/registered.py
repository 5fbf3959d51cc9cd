"""A registry before tampering: world models, and the agents of each.

Every agent has a run with its edge, is in use, and was validated in the simulator that followed its
own; the ledger beside them is unchanged.
"""

from pathlib import Path

import make.ledger
import make.service
from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import Agent, WorldModel
from agentworld.lineage.mlflow import MlflowRegistry
from agentworld.operations.ledger import open_evidence
from agentworld.records.base import Digest, now
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.episode import new_name
from agentworld.records.run import RunClosing, RunOpening
from agentworld.records.statements.alias import AgentMove, AgentVersion, AliasMove
from agentworld.records.statements.edge import Claim
from agentworld.records.statements.validation import Validation
from agentworld.statements.alias_moves import AliasMoveSigner
from make import records
from make.statement import file, registered

AGENTS = ("first-agent", "second-agent", "third-agent")
WORLDS = ("first-world", "second-world")
NAMES = (*AGENTS, *WORLDS)
STARTED = records.digest("starting")
NEXT = records.digest("the next simulator")


class Store:
    """A folder with an MLflow in a database file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.ledger = make.service.ledger(folder)
        self.statement_signer = make.service.log_signer(folder, None).statement_signer
        self.registry = MlflowRegistry(f"sqlite:///{folder}/mlflow.db", folder / "mlflow-artifacts")

    @property
    def sources(self) -> Sources:
        evidence = open_evidence(self.folder)
        return Sources(self.registry, self.ledger, self.folder, evidence, evidence.step_keys or {})

    def world(self, name: str) -> Digest:
        """A world model, and its simulator."""
        model, artifact = self._model(name)
        data = records.digest(f"data of {name}")
        checkpoint = records.checkpoint("rl", artifact=artifact, data=data)
        world_model = WorldModel(stages=(checkpoint,), report=records.digest(f"report of {name}"))
        registered(name, world_model, model, self.registry, self.folder)
        return records.pinned(self.folder, artifact=artifact).digest

    def agent(self, name: str, simulator: Digest) -> None:
        """An agent that was trained in a run of the simulator."""
        model, artifact = self._model(name)
        run = self._run(name, simulator, artifact)
        fields = {"artifact": artifact, "simulator": simulator}
        claim = Claim(agent=name, starting_weights=STARTED, **fields)
        data = records.digest(f"data of {name}")
        checkpoint = records.checkpoint("agent", parents=[STARTED], data=data, **fields)
        edge = self.statement_signer.edge(self.ledger.run(run), claim)
        agent = Agent(checkpoint=checkpoint, run=run, edge=edge)
        ref = registered(name, agent, model, self.registry, self.folder)
        version = AgentVersion(version=ref.version, artifact=artifact, run=run)
        self._move(f"{name}@production", AgentMove(kind="agent", agent=version, by="ada"))
        self.registry.set_alias(ref, "production")

    def validated(self, name: str, simulator: Digest) -> None:
        """A validation in a live shell and in a simulator."""
        _, artifact = self._model(name)
        report = records.agent_report(simulator=simulator, live_steps=len(name))
        inputs = {"agent": artifact, "imitated": STARTED, "simulator": simulator}
        folder = records.finished_step(self.folder, "validate", report.digest, **inputs)
        report.write(folder / "report.json")
        fields = {"artifact": artifact, "imitated": STARTED, "step": folder.name}
        file(Validation(report=report, at=now(), **fields), self.folder)

    def moved(self, alias: str, *simulators: Digest) -> None:
        """Points a simulator's alias at these, one after another."""
        for simulator in simulators:
            self._move(alias, AliasMove(kind="simulator", simulator=simulator, by="ada"))

    def _move(self, alias: str, move: AliasMove | AgentMove) -> None:
        names = AliasMoveSigner(self.ledger, self.statement_signer)
        names.move(alias, move, None, new_name(), dry_run=False)

    def _run(self, agent: str, simulator: Digest, weights: Digest) -> str:
        opening = RunOpening(agent=agent, starting_weights=STARTED)
        run = self.ledger.open_run(opening, simulator).id
        episode = make.ledger.open_episode(self.ledger, run, simulator)
        self.ledger.write(make.ledger.taken(episode, "[0] ~"))
        self.ledger.close_run(run, RunClosing(final_weights=weights))
        make.service.log_signer(self.folder, None).seal(run)
        return run

    def _model(self, name: str) -> tuple[Path, Digest]:
        model = self.folder / name
        model.mkdir(exist_ok=True)
        (model / "model.safetensors").write_bytes(f"the weights of {name}".encode())
        return model, ArtifactManifest.of(model).digest


def built(folder: Path) -> Sources:
    """Creates all of them in a new folder; the last agent was not validated in the next
    simulator.
    """
    store = Store(folder)
    simulators = [store.world(name) for name in WORLDS]
    for number, name in enumerate(AGENTS):
        store.agent(name, simulators[number % 2])
    for name in AGENTS[:-1]:
        store.validated(name, NEXT)
    store.moved("shell-stable", simulators[0], NEXT)
    return store.sources
