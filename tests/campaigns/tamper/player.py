"""The actions of a service for trainers, operators and users, by its own components."""

import asyncio
import json
from contextlib import suppress

import make.service
from agentworld.audit.checks.withdrawals import missing_versions
from agentworld.engine.base import Completion
from agentworld.engine.fake import FakeEngine
from agentworld.errors import Conflict
from agentworld.http.schemas import Request
from agentworld.ledger import Ledger
from agentworld.lineage.base import Agent, VersionRef
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.base import digest_bytes
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.episode import EpisodeOpening, Source, new_name
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.records.simulator import ConfidencePolicy
from agentworld.records.statements.alias import AgentMove, AliasMove
from agentworld.records.statements.edge import Claim
from agentworld.records.statements.validation import Validation
from agentworld.serving.episodes.store import EpisodeStore
from agentworld.serving.service import SimulatorService
from agentworld.signing.keys import SIMULATOR_KEYS, STEP_KEYS, load_signer, public_pem
from agentworld.signing.weights import RunWeights, sign_weights
from agentworld.statements.alias_moves import AliasMoveSigner
from agentworld.statements.genesis import now
from campaigns.tamper.world import World
from make import records
from make.statement import file, registered

STARTED = records.digest("starting")
MANIFESTS = (
    records.manifest(confidence=ConfidencePolicy(min_logprob=-1.0)),
    records.manifest(confidence=ConfidencePolicy(num_samples=3, min_agreement=0.5)),
)
TASK = records.task(success={"closing": "echo besa .+", "output": "besa"}, turn_limit=12)
UNSOLVED = TASK.model_copy(update={"turn_limit": 4})
LONG = "a long text, "
_NAMES = 4
_STEPS = 10


class Player:
    """Acts on the world that the environment names."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ledger: Ledger = make.service.ledger(world.folder)
        self.episode_store = EpisodeStore(self.ledger)
        self.services = [
            SimulatorService(manifest, FakeEngine(_answer), self.episode_store)
            for manifest in MANIFESTS
        ]
        self.log_signer = make.service.log_signer(world.folder, None)
        self.names = AliasMoveSigner(self.ledger, self.log_signer.statement_signer)

    async def train(self, number: int, tenant: str = "local", purpose: str = "training") -> str:
        """A run with seven episodes of different ends."""
        service = self.services[number % 2]
        agent = f"agent-{number % _NAMES}"
        opening = RunOpening(agent=agent, starting_weights=STARTED, purpose=purpose)
        run = self.ledger.open_run(opening, service.digest, tenant=tenant).id
        openings = [
            EpisodeOpening(run=run, task=TASK),
            EpisodeOpening(run=run, initial_state=f"{number}.txt: besa", turn_limit=_STEPS),
            EpisodeOpening(run=run, simulation_instruction=f"{number}: be brief"),
            EpisodeOpening(run=run, simulation_instruction=LONG * 800),
            EpisodeOpening(run=run, task=UNSOLVED),
        ]
        episodes = [(await service.reset(opening)).episode for opening in openings]
        for step in range(1, _STEPS + 1):
            await asyncio.gather(*(self._step(service, item, step) for item in episodes))
        fork_opening = EpisodeOpening(run=run, fork=Source(episode=episodes[2], step=4))
        fork = (await service.reset(fork_opening)).episode
        await self._step(service, fork, 11)
        replay_opening = EpisodeOpening(run=run, replay=Source(episode=episodes[1], step=3))
        replay = (await service.reset(replay_opening)).episode
        for step in range(1, 4):
            await self._step(service, replay, step)
        await self.episode_store.end(episodes[2])
        return run

    async def go_on(self, run: str, number: int) -> None:
        """One more episode of an open run."""
        service = self.services[number % 2]
        episode = (await service.reset(EpisodeOpening(run=run))).episode
        await self._step(service, episode, 1)

    def close(self, run: str, *, signed: bool) -> AgentRun:
        """Closes a run with the weights of its model's files, and signs its log."""
        model = self.world.folder / "models" / run
        model.mkdir(parents=True)
        (model / "model.safetensors").write_bytes(f"made by {run}".encode())
        weights, simulator = ArtifactManifest.of(model).digest, self.ledger.run(run).simulator
        weights_statement = RunWeights(run=run, simulator=simulator, weights=weights)
        step_signer = load_signer(self.world.folder / "keys" / STEP_KEYS)
        signature = sign_weights(weights_statement, step_signer) if signed else None
        closed_run = self.ledger.close_run(
            run, RunClosing(final_weights=weights, signature=signature)
        )
        self.log_signer.seal(run)
        return closed_run

    def claim(self, run: AgentRun, *data: str) -> Agent:
        """The simulator's signature at an agent's registration."""
        assert run.final_weights
        fields = {"artifact": run.final_weights, "simulator": run.simulator}
        claim = {"starting_weights": STARTED, "data": tuple(map(records.digest, data))}
        edge = self.log_signer.statement_signer.edge(
            run, Claim(agent=run.opening.agent, **fields, **claim)
        )
        checkpoint = records.checkpoint("agent", parents=[STARTED], **fields)
        return Agent(checkpoint=checkpoint, run=run.id, edge=edge)

    def register(self, run: AgentRun, *data: str) -> VersionRef:
        """Registers an agent, with its signed registration."""
        agent, name, registry = self.claim(run, *data), run.opening.agent, self.registry
        model = self.world.folder / "models" / run.id
        ref = registered(name, agent, model, registry, self.world.folder)
        signature = registry.stored(ref).signature
        body = {"name": name, "agent": agent.model_dump(mode="json"), "signature": signature}
        with self.world.agents.open("a") as agents:
            agents.write(json.dumps(body) + "\n")
        return ref

    def withdraw(self, run: AgentRun, *data: str) -> None:
        """Registers an agent and withdraws it, with a declaration."""
        agents_text = self.world.agents.read_text()
        self.register(run, *data)
        self.world.agents.write_text(agents_text)
        missing = missing_versions(self.world.sources(self.ledger))
        for withdrawal in missing.withdrawals("it was no good", "ada", now()):
            self.log_signer.statement_signer.declare(withdrawal)

    @property
    def registry(self) -> MemoryRegistry:
        return self.world.registry(self.ledger)

    def use(self, ref: VersionRef, alias: str) -> None:
        """Uses this version under this alias from now on."""
        agent = self.registry.agent(ref)
        version = {"version": ref.version, "artifact": agent.artifact, "run": agent.run}
        move = AgentMove.model_validate({"kind": "agent", "agent": version, "by": "ada"})
        self.names.move(f"{ref.name}@{alias}", move, None, new_name(), dry_run=False)

    def retire(self, name: str, alias: str) -> None:
        """Ends the use under this alias."""
        self.names.end(f"{name}@{alias}", "bob", new_name(), reason="it broke")

    def validate(self, ref: VersionRef, number: int) -> None:
        """A validation in a live shell and in a service's simulator."""
        artifact, simulator = self.registry.agent(ref).artifact, self.services[number % 2].digest
        report = records.agent_report(simulator=simulator)
        inputs = {"agent": artifact, "imitated": STARTED, "simulator": simulator}
        folder = records.finished_step(self.world.folder, "validate", report.digest, **inputs)
        report.write(folder / "report.json")
        fields = {"artifact": artifact, "imitated": STARTED, "step": folder.name, "at": now()}
        file(Validation(report=report, **fields), self.world.folder)

    def name_key(self) -> None:
        """Records the current signing key in the ledger, as a service on a cluster does."""
        key = load_signer(self.world.folder / "keys" / SIMULATOR_KEYS).public_key
        self.ledger.signing_keys.use(key.keyid, public_pem(key).decode())

    def erase(self, run: str) -> None:
        """Erases the texts of a run's closed episodes, as retention does."""
        for episode in self.ledger.episodes(run):
            if episode.closed:
                with self.log_signer.statement_signer.declaring("erasure", episode.id) as declare:
                    self.ledger.erase_texts(episode.id, "retention", declare)

    def move(self, alias: str, number: int, by: str, **fields: object) -> None:
        """Points the alias at a service's simulator."""
        move = AliasMove.model_validate(
            {"kind": "simulator", "simulator": self.services[number % 2].digest, "by": by, **fields}
        )
        self.names.move(alias, move, None, new_name(), dry_run=False)

    def move_all(self, number: int) -> None:
        """Moves by a gate, by an override, with a canary for an object, and an end."""
        simulator, other_simulator = (self.services[(number + item) % 2].digest for item in (0, 1))
        report = records.agent_report(simulator=simulator)
        assert self.ledger.objects
        report_digest = self.ledger.objects.put(report.model_dump_json().encode())
        gate = ({"metric": "live_gain", "least": 0.05 * number},)
        self.move("shell-stable", number, "ada", report=report_digest, gate=gate, override="yes")
        canary = {"simulator": other_simulator, "percent": 10 + number}
        request = {"override": "it is wanted", "request": f"an-object/{number}"}
        self.move("terminal-next", number, "bob", canary=canary, **request)
        if number % 2:
            self.names.end("terminal-next", "bob", new_name(), dry_run=False)

    async def _step(self, service: SimulatorService, episode: str, number: int) -> None:
        action = "echo besa now" if number == 8 else f"cat {number}.txt"
        if number % 5 == 0:
            action = f"{LONG * 900} {episode}"
        with suppress(Conflict):  # closed
            await service.step(episode, Request(None, action))

    async def end(self) -> None:
        await self.episode_store.close()
        self.ledger.close()


def _answer(messages: list[dict[str, str]]) -> Completion:
    """Deterministic responses, some with low confidence."""
    action = messages[-1]["content"]
    number = int(digest_bytes(f"{action} {len(messages)}".encode())[-4:], 16)
    observation = "besa\n[0] ~" if action.startswith("echo") else f"{number}\n[0] ~"
    if number % 7 == 0:
        observation = f"{LONG * 700} {number}\n[0] ~"
    return Completion(observation, 10 + number % 90, 7, "stop", -number / 20_000, number % 10)
