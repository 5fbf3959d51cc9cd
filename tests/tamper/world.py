"""A store as services leave it: what an attacker finds, and what he cannot reach.

Two simulators serve two tenants. Runs are open, closed with a claim or with a signature; episodes
are open, done, ended by a limit or closed, forked, repeated and erased; texts are short and long,
answers sure and not. Agents are registered, one of them twice.
"""

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import make
import make_service
from agentworld.engine.base import Completion
from agentworld.engine.fake import FakeEngine
from agentworld.errors import Conflict
from agentworld.evidence.keys import SIMULATOR_KEYS, STEP_KEYS, load_signer, public_pem, rotate
from agentworld.evidence.weights import RunWeights, sign_weights
from agentworld.ledger import Ledger
from agentworld.records.alias import AliasMove
from agentworld.records.base import digest_bytes
from agentworld.records.edge import Claim
from agentworld.records.episode import EpisodeOpening, Source, new_name
from agentworld.records.run import AgentRun, RunClosing, RunOpening
from agentworld.records.simulator import ConfidencePolicy
from agentworld.simulate.alias_book import AliasBook
from agentworld.simulate.keeper import Keeper
from agentworld.simulate.service import SimulatorService
from agentworld.simulate.session import Request

STARTED = make.digest("starting")
MANIFESTS = (
    make.manifest(confidence=ConfidencePolicy(min_logprob=-1.0)),
    make.manifest(confidence=ConfidencePolicy(num_samples=3, min_agreement=0.5)),
)
TASK = make.task(success={"closing": "echo besa .+", "output": "besa"}, turn_limit=12)
LONG = "a long text, "
_STEPS = 10


class World(NamedTuple):
    """A folder: the ledger and the objects are the attacker's, keys and checkpoints are not."""

    folder: Path

    @property
    def ledger_file(self) -> Path:
        return self.folder / "ledger.db"

    @property
    def snapshots(self) -> list[Path]:
        """Old copies of the ledger, the oldest first; all that is in the newest is in it still."""
        return sorted((self.folder / "snapshots").glob("*.db"))

    def back_up(self, to: Path) -> None:
        """Copies the ledger as it is by now."""
        with closing(sqlite3.connect(self.ledger_file)) as database:
            database.execute(f"VACUUM INTO '{to}'")

    @property
    def num_records(self) -> int:
        """Rows of the ledger."""
        tables = ("runs", "log", "episodes", "steps", "checkpoints", "attestations", "aliases")
        with closing(sqlite3.connect(self.ledger_file)) as database:
            counts = [database.execute(f"SELECT count(*) FROM {table}") for table in tables]
            return sum(count.fetchone()[0] for count in counts)


def build(folder: Path) -> World:
    """A world in a new folder; all of it is signed."""
    folder.mkdir(parents=True)
    (folder / "snapshots").mkdir()
    asyncio.run(_play(World(folder)))
    return World(folder)


class Player:
    """What a service does for trainers, by the parts that a service is made of."""

    def __init__(self, folder: Path) -> None:
        self.ledger: Ledger = make_service.ledger(folder)
        self.keeper = Keeper(self.ledger)
        self.services = [
            SimulatorService(manifest, FakeEngine(_answer), self.keeper) for manifest in MANIFESTS
        ]
        self.folder = folder
        self.sealer = make_service.sealer(folder, None)
        self.names = AliasBook(self.ledger, self.sealer.notary)

    async def train(self, number: int, tenant: str = "local", purpose: str = "training") -> str:
        """A run with six episodes of different ends."""
        service = self.services[number % 2]
        opening = RunOpening(agent=f"agent-{number}", starting_weights=STARTED, purpose=purpose)
        run = self.ledger.open_run(opening, service.digest, tenant=tenant).id
        begun = [
            EpisodeOpening(run=run, task=TASK),
            EpisodeOpening(run=run, initial_state=f"{number}.txt: besa", turn_limit=_STEPS),
            EpisodeOpening(run=run, simulation_instruction=f"{number}: be brief"),
            EpisodeOpening(run=run, simulation_instruction=LONG * 800),
        ]
        played = [(await service.reset(opening)).episode for opening in begun]
        for step in range(1, _STEPS + 1):
            await asyncio.gather(*(self._step(service, each, step) for each in played))
        copied = EpisodeOpening(run=run, fork=Source(episode=played[2], step=4))
        fork = (await service.reset(copied)).episode
        await self._step(service, fork, 11)
        again = EpisodeOpening(run=run, replay=Source(episode=played[1], step=3))
        replay = (await service.reset(again)).episode
        for step in range(1, 4):
            await self._step(service, replay, step)
        await self.keeper.end(played[2])
        return run

    def close(self, run: str, *, signed: bool) -> AgentRun:
        """Ends a run, and signs its log."""
        weights, simulator = make.digest(f"made by {run}"), self.ledger.run(run).simulator
        made = RunWeights(run=run, simulator=simulator, weights=weights)
        steps = load_signer(self.folder / "keys" / STEP_KEYS)
        signature = sign_weights(made, steps) if signed else None
        found = self.ledger.close_run(run, RunClosing(final_weights=weights, signature=signature))
        self.sealer.seal(run)
        return found

    def register(self, run: AgentRun, *data: str) -> None:
        """What the simulator signs when an agent is registered."""
        assert run.final_weights
        claim = Claim(
            agent=run.opening.agent,
            artifact=run.final_weights,
            starting_weights=STARTED,
            simulator=run.simulator,
            data=tuple(map(make.digest, data)),
        )
        self.sealer.notary.edge(run, claim)

    def name_key(self) -> None:
        """Tells the ledger which key signs now, as a service on a cluster does."""
        key = load_signer(self.folder / "keys" / SIMULATOR_KEYS).public_key
        self.ledger.signing_keys.use(key.keyid, public_pem(key).decode())

    def erase(self, run: str) -> None:
        """Retention takes away the texts of a run's episodes that are closed."""
        for episode in self.ledger.episodes(run):
            if episode.closed:
                with self.sealer.notary.declaring("erasure", episode.id) as declare:
                    self.ledger.erase_texts(episode.id, "retention", declare)

    def move(self, alias: str, number: int, by: str, **shown: object) -> None:
        """The alias means a service's simulator from now on."""
        move = AliasMove.model_validate(
            {"simulator": self.services[number % 2].digest, "by": by, **shown}
        )
        self.names.move(alias, move, None, new_name(), dry_run=False)

    def move_all(self, number: int) -> None:
        """Past a gate by a report, in spite of one, with a canary, and to an end."""
        simulator, other = (self.services[(number + each) % 2].digest for each in (0, 1))
        report = make.agent_report(simulator=simulator)
        assert self.ledger.objects
        kept = self.ledger.objects.put(report.model_dump_json().encode())
        gate = ({"metric": "live_gain", "least": 0.1 * (number % 3)},)
        self.move("terminal-stable", number, "ada", report=kept, gate=gate, override="yes")
        canary = {"simulator": other, "percent": 10 + number}
        self.move("terminal-next", number, "bob", canary=canary, override="it is wanted")
        if number % 2:
            self.names.end("terminal-next", "bob", new_name(), dry_run=False)

    async def _step(self, service: SimulatorService, episode: str, number: int) -> None:
        act = "echo besa now" if number == 8 else f"cat {number}.txt"
        if number % 5 == 0:
            act = f"{LONG * 900} {episode}"
        with suppress(Conflict):  # it is over
            await service.step(episode, Request(None, act))

    async def end(self) -> None:
        await self.keeper.close()
        self.ledger.close()


async def _play(world: World) -> None:
    player = Player(world.folder)
    player.name_key()
    player.ledger.aliases.set("terminal-stable", MANIFESTS[0].digest, "before")
    closed = [player.close(await player.train(14), signed=False)]
    over = (each.id for each in player.ledger.episodes(closed[0].id) if each.closed)
    player.ledger.erase_texts(next(over))
    player.sealer.notary.adopt()
    for number in range(14):
        purpose = "evaluation" if number == 5 else "training"
        run = await player.train(number, "acme" if number % 3 == 0 else "local", purpose)
        player.sealer.seal_all()
        if number < 11:
            closed.append(player.close(run, signed=number % 2 == 0))
            player.register(closed[-1], "data")
        if number % 2:
            world.back_up(world.folder / "snapshots" / f"{number}.db")
        if number % 3 == 0:
            player.move_all(number)
        if number == 3:
            rotate(world.folder / "keys" / SIMULATOR_KEYS)
            player.name_key()
    player.erase(closed[1].id)
    for run in closed[:2]:  # told again with more data: of each agent the newer edge counts
        player.register(run, "data", "more data")
    player.sealer.seal_all()
    await player.end()
    with closing(sqlite3.connect(world.ledger_file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _answer(messages: list[dict[str, str]]) -> Completion:
    """Sure of some answers, and always of the same."""
    asked = messages[-1]["content"]
    drawn = int(digest_bytes(f"{asked} {len(messages)}".encode())[-4:], 16)
    shown = "besa\n[0] ~" if asked.startswith("echo") else f"{drawn}\n[0] ~"
    if drawn % 7 == 0:
        shown = f"{LONG * 700} {drawn}\n[0] ~"
    return Completion(shown, 10 + drawn % 90, 7, "stop", -drawn / 20_000, drawn % 10)
