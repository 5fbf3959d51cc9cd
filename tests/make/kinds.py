"""A store with statements of every kind: two of one tenant, and one of another tenant, `acme`."""

from pathlib import Path
from typing import NamedTuple

import make.ledger
import make.service
from agentworld.audit.read.sources import Sources
from agentworld.ledger import Ledger
from agentworld.lineage.base import Agent, VersionRef
from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations.ledger import open_evidence
from agentworld.records.attestation import Attestation
from agentworld.records.base import Digest, now
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.episode import new_name
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.records.statements.alias import AgentMove, AgentVersion, AliasMove
from agentworld.records.statements.edge import Claim
from agentworld.records.statements.genesis import Genesis
from agentworld.records.statements.registration import Links, RegisteredVersion
from agentworld.records.statements.restore import Restore
from agentworld.records.statements.validation import Validation
from agentworld.records.statements.withdrawal import Withdrawal
from agentworld.signing.envelope import attest
from agentworld.signing.keys import SIMULATOR_KEYS, ensure_signer
from agentworld.statements.alias_moves import AliasMoveSigner
from agentworld.storage.simulators import PinnedSimulator
from make import records
from make.statement import file, registered

STARTED = records.digest("starting")
OF_AGENT = "agent's alias"


class RowNames(NamedTuple):
    """For a kind, the names of three rows: the one to tamper with, one before it, and another
    tenant's.
    """

    own: str
    older: str
    others: str


class Store(NamedTuple):
    """An audit's sources, and the signed statements."""

    folder: Path
    sources: Sources
    kinds: dict[str, RowNames]
    genesis: bytes
    """A genesis statement of an empty ledger, signed by our own key."""

    @property
    def ledger(self) -> Ledger:
        return self.sources.ledger

    @property
    def statement_signer(self):
        return make.service.log_signer(self.folder, None).statement_signer


class _Player:
    """A service of one simulator, and the steps that register and use agents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.simulator: PinnedSimulator = records.pinned(folder)
        self.ledger = make.service.ledger(folder)
        self.log_signer = make.service.log_signer(folder, self.simulator.digest)
        self.signer = self.log_signer.statement_signer
        self.registry = MemoryRegistry()

    def run(self, tenant: str, number: int) -> AgentRun:
        opening = RunOpening(agent=f"{tenant}-agent", starting_weights=STARTED)
        run = self.ledger.open_run(opening, self.simulator.digest, tenant=tenant)
        for _ in range(2):  # each of them can be erased
            episode = make.ledger.open_episode(self.ledger, run.id, self.simulator.digest)
            self.ledger.write(make.ledger.taken(episode, f"{tenant} {number}"))
        closed_run = self.ledger.close_run(run.id, RunClosing(final_weights=self._made(run)))
        self.log_signer.seal(run.id)
        return closed_run

    def register(self, run: AgentRun) -> VersionRef:
        """Registers an agent with its edge, a use and a validation."""
        name, artifact, simulator = run.opening.agent, run.final_weights, run.simulator
        fields = {"artifact": artifact, "simulator": simulator}
        claim = Claim(agent=name, starting_weights=STARTED, **fields)
        checkpoint = records.checkpoint("agent", parents=[STARTED], **fields)
        agent = Agent(checkpoint=checkpoint, run=run.id, edge=self.signer.edge(run, claim))
        model = self.folder / "models" / run.id
        ref = registered(name, agent, model, self.registry, self.folder)
        version = AgentVersion(version=ref.version, artifact=artifact, run=run.id)
        self.move(f"{name}@production", AgentMove(kind="agent", agent=version, by="ada"))
        self.registry.set_alias(ref, "production")
        validation_fields = {"artifact": artifact, "imitated": STARTED, "step": run.id, "at": now()}
        file(
            Validation(report=records.agent_report(simulator=simulator), **validation_fields),
            self.folder,
        )
        return ref

    def withdraw(self, name: str) -> None:
        """Registers a version and withdraws it."""
        links, artifact = Links(run=f"run of {name}"), records.digest(name)
        fields = {"registered_as": name, "version": 1, "artifact": artifact, "run": ""}
        version = RegisteredVersion(
            record=records.digest("record"), links=links, at=now(), **fields
        )
        file(version, self.folder)
        reason_fields = {"reason": "no good", "by": "ada", "at": now()}
        withdrawal_fields = {
            "version": version.ref,
            "artifact": artifact,
            "registered": version.digest,
        }
        self.signer.declare(Withdrawal(**withdrawal_fields, **reason_fields))

    def move(self, alias: str, move: AliasMove | AgentMove | None = None) -> None:
        move = move or AliasMove(kind="simulator", simulator=self.simulator.digest, by="ada")
        alias_signer = AliasMoveSigner(self.ledger, self.signer)
        alias_signer.move(alias, move, None, new_name(), dry_run=False)

    def lose(self, run: str, tenant: str) -> None:
        """Declares the loss of a copy that no longer exists."""
        copies = (f"{run or 'alias-changes/gone'}/000000000099.dsse.json",)
        self.signer.declare(Restore(run=run, lost=copies, reason=tenant, by="ada", at=now()))

    def erase(self, run: AgentRun) -> None:
        for episode in self.ledger.episodes(run.id):
            with self.signer.declaring("erasure", episode.id) as declare:
                self.ledger.erase_texts(episode.id, "retention", declare)

    def newest(self, kind: str, num: int = 1) -> list[str]:
        """The names of the newest rows of a kind, the newest last."""
        rows = self.ledger.attestations.all()
        return [row.name for row in rows if kind_of(row) == kind][-num:]

    def _made(self, run: AgentRun) -> Digest:
        model = self.folder / "models" / run.id
        model.mkdir(parents=True)
        (model / "model.safetensors").write_bytes(f"made by {run.id}".encode())
        return ArtifactManifest.of(model).digest


def kind_of(row: Attestation) -> str:
    """The row's kind, with aliases of agents and of simulators as separate kinds."""
    return OF_AGENT if row.kind == "alias" and "@" in row.subject else row.kind


def every_kind(folder: Path) -> Store:
    """Builds the store in an empty folder."""
    player = _Player(folder)
    player.ledger.aliases.set("stable", player.simulator.digest, "ada")
    names_by_kind: dict[str, list[str]] = {}
    for tenant, num_runs in (("acme", 1), ("home", 2)):
        runs = [player.run(tenant, number) for number in range(num_runs)]
        for run in runs:
            player.withdraw(f"{tenant}-gone-{run.id[:4]}")
            player.register(run)
            player.move("stable" if tenant == "home" else "acme-stable")
        player.erase(runs[0])
        for _ in runs:
            player.lose(runs[-1].id, tenant)
        for kind in {*map(kind_of, player.ledger.attestations.all())} - {"genesis"}:
            names_by_kind[kind] = [*player.newest(kind, 2), *names_by_kind.get(kind, [])]
    (genesis,) = player.newest("genesis")
    kinds = {kind: RowNames(names[1], names[0], names[-1]) for kind, names in names_by_kind.items()}
    kinds["genesis"] = RowNames(genesis, genesis, genesis)
    evidence = open_evidence(folder)
    sources = Sources(player.registry, player.ledger, folder, evidence, evidence.step_keys or {})
    signer = ensure_signer(folder / "keys" / SIMULATOR_KEYS)
    attestation = attest(Genesis(changes=(), erased=("acme",), at=now()), signer)
    return Store(folder, sources, kinds, attestation.envelope)
