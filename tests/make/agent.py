"""An agent trained in a store's simulator, with signed statements, registered and in use."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import make.ledger
import make.service
from agentworld.audit.read.sources import Sources
from agentworld.ledger.writes import NewStep
from agentworld.lineage.base import Agent, Registry, VersionRef
from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations.ledger import open_evidence
from agentworld.records.base import Digest, now
from agentworld.records.episode import new_name
from agentworld.records.run import RunClosing, RunOpening
from agentworld.records.statements.alias import AgentMove, AgentVersion, AliasChange, AliasMove
from agentworld.records.statements.edge import Claim
from agentworld.records.statements.validation import Validation
from agentworld.statements.alias_moves import AliasMoveSigner
from agentworld.storage.simulators import PinnedSimulator
from make import records
from make.statement import file
from make.template import copied

NAME, STARTED = "shell-agent", records.digest("imitated")


class RegisteredAgent(NamedTuple):
    """A store, its registry, and the agent."""

    store: Path
    registry: Registry
    simulator: PinnedSimulator
    ref: VersionRef
    agent: Agent

    @property
    def ledger(self):
        return make.service.ledger(self.store)

    @property
    def statement_signer(self):
        return make.service.log_signer(self.store, self.simulator.digest).statement_signer

    @property
    def sources(self) -> Sources:
        return Sources(self.registry, self.ledger, self.store, open_evidence(self.store))

    @property
    def moves(self) -> AliasMoveSigner:
        return AliasMoveSigner(self.ledger, self.statement_signer)

    def version(self, **fields: object) -> AgentVersion:
        agent = self.agent
        version = {"version": self.ref.version, "artifact": agent.artifact, "run": agent.run}
        return AgentVersion.model_validate({**version, **fields})

    def move(self, **fields: object) -> AgentMove:
        move = {"kind": "agent", "agent": self.version(), "by": "ada", **fields}
        return AgentMove.model_validate(move)

    def signed(self, label: str = "production", **fields: object) -> AliasChange:
        """Records a signed use under this label, without mirroring it."""
        alias = f"{self.ref.name}@{label}"
        return self.moves.move(alias, self.move(**fields), None, new_name(), dry_run=False)

    def use(self, label: str = "production") -> AliasChange:
        """Records a signed use, and mirrors it."""
        change = self.signed(label)
        self.registry.set_alias(self.ref, label)
        return change

    def retire(self, label: str = "production", by: str = "ada") -> AliasChange:
        """Ends the use under this label, without mirroring it."""
        return self.moves.end(f"{self.ref.name}@{label}", by, new_name())

    def moved(self, alias: str, *simulators: Digest) -> None:
        """Points a simulator's alias at these simulators, one after another."""
        for simulator in simulators:
            move = AliasMove(kind="simulator", simulator=simulator, by="ada")
            self.moves.move(alias, move, None, new_name(), dry_run=False)

    def validated(self, simulator: Digest, *, signed: bool = True, **report_fields: object) -> Path:
        """A validation in a live shell and in this simulator; returns the folder of the step."""
        report = records.agent_report(simulator=simulator, **report_fields)
        inputs = {"agent": self.agent.artifact, "imitated": STARTED, "simulator": simulator}
        folder = records.finished_step(self.store, "validate", report.digest, **inputs)
        report.write(folder / "report.json")
        if signed:
            fields = {"artifact": self.agent.artifact, "imitated": STARTED, "step": folder.name}
            file(Validation(report=report, at=now(), **fields), self.store)
        return folder


def registered(
    store: Path,
    registry: Registry | None = None,
    made: str = "trained",
    name: str = NAME,
    data: tuple[Digest, ...] = (),
) -> RegisteredAgent:
    """Trains an agent in the store's simulator, in a run of two steps; `data` is for its edge."""
    if registry is None:
        return copied(_registered, store, made=made, name=name, data=data)
    return _registered(store, registry, made, name, data)


def _registered(
    store: Path,
    registry: Registry | None = None,
    made: str = "trained",
    name: str = NAME,
    data: tuple[Digest, ...] = (),
) -> RegisteredAgent:
    registry, simulator = registry or MemoryRegistry(), records.pinned(store)
    ledger, weights = make.service.ledger(store), records.digest(made)
    opening = RunOpening(agent=name, starting_weights=STARTED)
    run = ledger.open_run(opening, simulator.digest)
    episode = make.ledger.open_episode(ledger, run.id, simulator.digest)
    ledger.write([NewStep(run.id, step) for step in make.ledger.steps(episode, "a", "b")])
    run = ledger.close_run(run.id, RunClosing(final_weights=weights))
    log_signer = make.service.log_signer(store, simulator.digest)
    log_signer.seal(run.id)
    claim = {"starting_weights": STARTED, "simulator": simulator.digest, "data": data}
    edge = log_signer.statement_signer.edge(run, Claim(agent=name, artifact=weights, **claim))
    checkpoint = records.checkpoint(
        "agent", artifact=weights, parents=[STARTED], simulator=simulator.digest
    )
    agent = Agent(checkpoint=checkpoint, run=run.id, edge=edge)
    (store / "model").mkdir(exist_ok=True)
    (store / "model/model.safetensors").write_bytes(b"weights")
    ref = registry.register_agent(name, agent, store / "model")
    return RegisteredAgent(store, registry, simulator, ref, agent)


def lose(agent: RegisteredAgent, statement: str, *values: object) -> None:
    """Deletes a statement, as an attacker with access to the database would."""
    with closing(sqlite3.connect(agent.store / "ledger.db")) as database, database:
        assert database.execute(statement, values).rowcount != 0
