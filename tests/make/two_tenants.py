"""A store of two tenants with each kind of statement and each outcome, with its own MLflow.

Services, steps and an operator create it. Acts and objects have names, so that tests can refer to
parts that differ between stores.

The agents of `acme` are proven, observed and disputed, and one is withdrawn; the one of `home` is
revalidated. Aliases move by a gate, past one and with a canary, and end. A backup loses a run, a
move and an erasure. Finally, MLflow and the ledger are tampered with.
"""

import asyncio
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import make.registry
import make.service
from agentworld.engine.fake import FakeEngine
from agentworld.http.schemas import Request
from agentworld.lineage.base import Agent, VersionRef, WorldModel
from agentworld.operations.aliases import end_alias, set_agent_alias
from agentworld.operations.declarations import (
    declare_restored,
    declare_withdrawn,
    erase_episode,
)
from agentworld.operations.simulators import MoveConditions, attach, set_alias
from agentworld.records.base import Digest, now
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.episode import EpisodeOpening, new_name
from agentworld.records.gate import Gate
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.records.statements.alias import AliasMove, Canary
from agentworld.records.statements.edge import Claim
from agentworld.records.statements.validation import Validation
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.service import SimulatorService
from agentworld.signing.keys import (
    SIMULATOR_KEYS,
    STEP_KEYS,
    ensure_signer,
    load_signer,
    rotate,
)
from agentworld.signing.weights import RunWeights, sign_weights
from agentworld.statements.alias_moves import AliasMoveSigner
from agentworld.storage.simulators import PinnedSimulator
from make import records
from make.audit_rows import History, Names
from make.statement import file, registered
from make.story import moment

STARTED = records.digest("imitated")
DATA = records.digest("data of both")
MOMENTS = ("a world", "agents", "moves", "losses", "now")
"""The times after the parts of the story; the last one is its end."""


def two_tenants(store: Path) -> History:
    """Builds the store in an empty folder."""
    player, moments = _Player(store), {}
    parts = (_a_world, _agents, _moves, _losses, _now)
    for name, part in zip(MOMENTS, parts, strict=True):
        part(player)
        moments[name] = moment()
    player.close()
    return History(store, player.names, moments, player.missed)


def _a_world(player: "_Player") -> None:
    player.trust_steps()
    with player.act("alias old is set, and nobody signs"):
        player.ledger.aliases.set("old", records.digest("a simulator of long ago"), "before")
    player.world("first")
    player.world("second")
    with player.act("alias stable is set by a gate"):
        player.set_alias("stable", "first", gate=0.5)
    with player.act("alias next is set past a gate"):
        player.set_alias("next", "second", gate=0.9, override="it is wanted")


def _agents(player: "_Player") -> None:
    player.train("acme1", "acme", "acme-agent", is_signed=True)
    player.train("acme2", "acme", "acme-agent", is_signed=False)
    player.train("acme3", "acme", "acme-guess", is_signed=True, claimed="second")
    player.train("home1", "home", "home-agent", is_signed=True)
    player.train("home2", "home", "home-gone", is_signed=True)
    player.play("acme4", "acme", "acme-agent")
    for ref, alias in (("acme-agent@1", "production"), ("home-agent@1", "shop")):
        with player.act(f"{ref} is used as {alias}"):
            player.use(ref, alias)
    player.validate("acme-agent@1", "acme1", "first")


def _moves(player: "_Player") -> None:
    with player.act("a key is rotated"):
        player.rotate()
    with player.act("alias stable gets a canary"):
        player.move("stable", "first", canary="second")
    with player.act("alias stable moves"):
        player.move("stable", "second")
    with player.act("alias next ends"):
        player.end_alias("next")
    with player.act("acme-agent@2 is used as production"):
        player.use("acme-agent@2", "production")
    with player.act("acme-agent@1 is used as kiosk"):
        player.use("acme-agent@1", "kiosk")
    with player.act("acme-agent is retired as kiosk"):
        player.retire("acme-agent", "kiosk")


def _losses(player: "_Player") -> None:
    player.backup()
    player.play("home3", "home", "home-agent")
    with player.act("what a backup loses is done"):
        player.go_on("acme4")
        player.move("stable", "first")
        player.erase("acme1", 2)
    with player.act("a backup is restored"):
        player.restore("the disk was lost")
    player.play("home4", "home", "home-agent")
    with player.act("an episode is erased"):
        player.erase("home1", 1)
    with player.act("home-gone@1 is withdrawn"):
        player.withdraw("home-gone@1", "it was no good")


def _now(player: "_Player") -> None:
    player.validate("home-agent@1", "home1", "second")
    with player.act("somebody writes into MLflow and into the ledger"):
        player.tamper()


class _Player:
    """A service, steps and an operator of one store."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.ledger = make.service.ledger(store)
        self.registry = make.registry.registry(store)
        self.simulators: dict[str, PinnedSimulator] = {}
        self.missed: dict[str, str] = {}
        self.names = Names({STARTED: "the starting weights", DATA: "the data"}, [])
        self.names.words[records.digest("a simulator of long ago")] = "a simulator of long ago"

    @contextmanager
    def act(self, name: str) -> Iterator[None]:
        """Times within the block belong to this act."""
        start = moment()
        # Signed times have this precision.
        self.names.acts.append((start.replace(microsecond=start.microsecond // 1000 * 1000), name))
        yield

    def close(self) -> None:
        self.ledger.close()

    def trust_steps(self) -> None:
        self._name_key(SIMULATOR_KEYS, "service key 1")
        self._name_key(STEP_KEYS, "step key")

    def rotate(self) -> None:
        rotate(self.store / "keys" / SIMULATOR_KEYS)
        self._name_key(SIMULATOR_KEYS, "service key 2")

    def world(self, name: str) -> None:
        """A world model, its simulator, and its evaluation."""
        model, artifact = self._model(name)
        cpt = records.checkpoint("cpt", data=DATA, artifact=records.digest(f"cpt of {name}"))
        rl = records.checkpoint("rl", data=DATA, parents=[cpt.artifact], artifact=artifact)
        world_model = WorldModel(stages=(cpt, rl), report=records.digest(f"report of {name}"))
        with self.act(f"world model {name} is registered"):
            registered(f"{name}-world", world_model, model, self.registry, self.store)
        pinned = records.pinned(self.store, artifact=artifact)
        report = records.served_report(simulator=pinned.digest)
        attach(pinned, report, self.store)
        self.simulators[name] = pinned
        for stage in (cpt, rl):
            self.names.words[stage.artifact] = f"{stage.stage} weights of {name}"
        self.names.words.update(
            {
                pinned.digest: f"simulator {name}",
                report.digest: f"evaluation of {name}",
                world_model.report: f"report of {name}",
            }
        )

    def play(self, run: str, tenant: str, agent: str) -> AgentRun:
        """A run of two episodes in the first simulator, which stays open."""
        opening, simulator = RunOpening(agent=agent, starting_weights=STARTED), self._digest()
        with self.act(f"run {run} is played"):
            self.ledger.open_run(opening, simulator, run, tenant)
            self.go_on(run)
        for number, episode in enumerate(self.ledger.episodes(run), 1):
            self.names.words[episode.id] = f"{run}-episode-{number}"
        return self.ledger.run(run)

    def go_on(self, run: str) -> None:
        """Plays two more episodes."""
        asyncio.run(self._episodes(run))
        self._log_signer.seal(run)

    def train(
        self, run: str, tenant: str, agent: str, *, is_signed: bool, claimed: str = "first"
    ) -> None:
        """A run that trains an agent, in the simulator that its trainer `claimed`, or another."""
        opened_run = self.play(run, tenant, agent)
        model, weights = self._model(run)
        statement = RunWeights(run=run, simulator=opened_run.simulator, weights=weights)
        signer = load_signer(self.store / "keys" / STEP_KEYS)
        with self.act(f"run {run} is closed"):
            signature = sign_weights(statement, signer) if is_signed else None
            run_closing = RunClosing(final_weights=weights, signature=signature)
            closed_run = self.ledger.close_run(run, run_closing)
            self._log_signer.seal(run)
        fields = {"artifact": weights, "simulator": self._digest(claimed)}
        claim = Claim(agent=agent, starting_weights=STARTED, data=(DATA,), **fields)
        checkpoint = records.checkpoint("agent", parents=[STARTED], **fields)
        with self.act(f"agent of {run} is registered"):
            edge = self._log_signer.statement_signer.edge(closed_run, claim)
            entity = Agent(checkpoint=checkpoint, run=run, edge=edge)
            registered(agent, entity, model, self.registry, self.store)

    def validate(self, ref: str, run: str, simulator: str) -> None:
        """A validation in a live shell and in a simulator."""
        artifact = self.ledger.run(run).final_weights
        assert artifact
        report = records.agent_report(simulator=self._digest(simulator))
        inputs = {"agent": artifact, "imitated": STARTED, "simulator": report.simulator}
        step = records.finished_step(self.store, "validate", report.digest, **inputs)
        report.write(step / "report.json")
        names = {report.digest: f"validation in {simulator}", step.name: f"of-{run}"}
        self.names.words.update(names)
        fields = {"artifact": artifact, "imitated": STARTED, "step": step.name}
        with self.act(f"{ref} is validated in {simulator}"):
            file(Validation(report=report, at=now(), **fields), self.store)

    def set_alias(self, alias: str, simulator: str, *, gate: float, override: str = "") -> None:
        pinned = self.simulators[simulator]
        gates = (Gate(metric="free_running.exact_match", least=gate),)
        report = records.served_report(simulator=pinned.digest).digest
        conditions = MoveConditions(gates, report, override or None)
        set_alias(alias, pinned.digest, self.store, "ada", conditions)

    def move(self, alias: str, simulator: str, *, canary: str = "") -> None:
        """A move as the operator requests it from a service."""
        part = Canary(simulator=self._digest(canary), percent=20) if canary else None
        move = AliasMove(kind="simulator", simulator=self._digest(simulator), by="bob", canary=part)
        self._aliases.move(alias, move, None, new_name(), dry_run=False)

    def end_alias(self, alias: str) -> None:
        self._aliases.end(alias, "bob", new_name(), dry_run=False)

    def use(self, ref: str, alias: str) -> None:
        set_agent_alias(
            f"{VersionRef.parse(ref).name}@{alias}", VersionRef.parse(ref), self.store, "ada"
        )

    def retire(self, name: str, alias: str) -> None:
        end_alias(f"{name}@{alias}", self.store, "bob", "it broke")

    def erase(self, run: str, number: int) -> None:
        erase_episode([*self.ledger.episodes(run)][number - 1].id, self.store, "bob")

    def backup(self) -> None:
        self._copy_ledger("ledger.db", "backup.db")

    def restore(self, reason: str) -> None:
        self.ledger.close()
        for path in self.store.glob("ledger.db*"):
            path.unlink()
        shutil.copy(self.store / "backup.db", self.store / "ledger.db")
        self.ledger = make.service.ledger(self.store)
        losses = declare_restored(self.store, reason, "bob")
        self.missed["audit restored before it is recorded"] = losses.model_dump_json()

    def withdraw(self, ref: str, reason: str) -> None:
        name, version = ref.split("@")
        self._change("mlflow.db", "DELETE FROM model_version_tags WHERE name = ?", name)
        statement = "DELETE FROM model_versions WHERE name = ? AND version = ?"
        self._change("mlflow.db", statement, name, version)
        declaration = declare_withdrawn(self.store, [ref], reason, "bob")
        self.missed["audit withdrawn before it is recorded"] = declaration.model_dump_json()

    def tamper(self) -> None:
        """Unsigned changes: an alias and a tag in MLflow, and an erasure."""
        ref = VersionRef.parse("acme-agent@1")
        self.registry.set_alias(ref, "champion")
        self.registry.mark(ref, "recipe", "another")
        (_, episode) = self.ledger.episodes("acme2")
        self.ledger.erase_texts(episode.id)

    def _digest(self, simulator: str = "first") -> Digest:
        return self.simulators[simulator].digest

    @property
    def _log_signer(self):
        return make.service.log_signer(self.store, None, self.ledger)

    @property
    def _aliases(self) -> AliasMoveSigner:
        return AliasMoveSigner(self.ledger, self._log_signer.statement_signer)

    async def _episodes(self, run: str) -> None:
        store = EpisodeStore(self.ledger)
        engine = FakeEngine(make.service.shell)
        service = SimulatorService(self.simulators["first"].manifest, engine, store)
        for number in (1, 2):
            episode = await service.reset(EpisodeOpening(run=run))
            await service.step(episode.episode, Request(None, f"echo {run} {number}"))
            await store.end(episode.episode)
        await store.close()

    def _model(self, name: str) -> tuple[Path, Digest]:
        model = self.store / "models" / name
        model.mkdir(parents=True)
        (model / "model.safetensors").write_bytes(f"the weights of {name}".encode())
        artifact = ArtifactManifest.of(model).digest
        self.names.words[artifact] = f"the weights of {name}"
        return model, artifact

    def _name_key(self, folder: str, name: str) -> None:
        key = ensure_signer(self.store / "keys" / folder).public_key
        self.names.words[key.keyid] = name

    def _copy_ledger(self, source: str, target: str) -> None:
        self._change(source, f"VACUUM INTO '{self.store / target}'", rows=-1)

    def _change(self, file_: str, statement: str, *values: object, rows: int = 1) -> None:
        with closing(sqlite3.connect(self.store / file_, isolation_level=None)) as database:
            assert database.execute(statement, values).rowcount >= rows
