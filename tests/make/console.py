"""A store for a console's tests: two tenants, a simulator, agents, and hostile text."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

from starlette.testclient import TestClient

import make.access
import make.ledger
from agentworld.ledger import Ledger
from agentworld.ledger.writes import EpisodeClosed, NewStep
from agentworld.lineage.base import Agent, Registry, VersionRef, WorldModel
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.episode import (
    Confidence,
    EpisodeStep,
    Source,
    new_name,
    text_digest,
)
from agentworld.records.run import RunClosing, RunOpening
from agentworld.records.statements.alias import AgentMove, AliasMove
from agentworld.records.statements.edge import Claim
from agentworld.records.usage import Usage
from agentworld.signing.keys import SIMULATOR_KEYS, ensure_signer, load_trusted
from agentworld.statements.alias_moves import AliasMoveSigner
from agentworld.statements.log_checkpoints import LogCheckpointSigner
from agentworld.storage.objects import WriteOnce
from agentworld_console.access import Callers
from agentworld_console.app import create_app
from agentworld_console.library import Library
from make import records

NASTY = (
    "<script>alert(1)</script> \x1b[2J\x1b]52;c;ZXZpbA==\x07 \x7f\r \u202egpj.exe\u2066 \u2028"
    " \ud800 {{ 7 * 7 }} \" onload='x'"
)
STARTED = records.digest("imitated")
USAGE = Usage(1_200, 1_024, 24, 0.21)


class ConsoleStore(NamedTuple):
    """The objects of the store, by name."""

    library: Library
    simulator: str
    run: str
    open_run: str
    rival_run: str
    agent: VersionRef
    rival: VersionRef
    episode: str
    fork: str
    erased: str
    rival_episode: str

    def move_on(self) -> None:
        """Points the simulator's alias at the next simulator."""
        move = AliasMove(kind="simulator", simulator=records.digest("next"), by="jo")
        self.names.move("shell-stable", move, None, new_name(), dry_run=False)

    @property
    def names(self) -> AliasMoveSigner:
        ledger = self.library.ledger
        signer = log_signer(self.library.store, ledger, self.simulator).statement_signer
        return AliasMoveSigner(ledger, signer)

    @property
    def pages(self) -> dict[str, str]:
        """An address of every kind of page."""
        return {
            "index": "/",
            "agents": "/agents",
            "in-use": "/in-use",
            "datasets": "/datasets",
            "dataset": f"/datasets/{records.digest('data')}",
            "simulators": "/simulators",
            "runs": "/runs",
            "agent": f"/agents/{self.agent}",
            "simulator": f"/simulators/{self.simulator}",
            "run": f"/runs/{self.run}",
            "episode": f"/episodes/{self.episode}",
            "fork": f"/episodes/{self.fork}",
            "erased": f"/episodes/{self.erased}",
            "graph": f"/graph?simulator={self.simulator}",
            "agent-graph": f"/graph?agent={self.agent}",
            "search": "/search?q=nobody",
        }


def library(
    store: Path, ledger: Ledger | None = None, registry: Registry | None = None
) -> ConsoleStore:
    """A signed ledger, a file of the store by default, and a registry, in memory by default."""
    ledger = ledger or Ledger(make.ledger.laid(f"sqlite:///{store}/ledger.db"))
    registry, pinned = registry or MemoryRegistry(), records.pinned(store)
    pinned.attach(records.served_report())
    registry.register_world_model("agentworld-shell", world_model(), store)
    ledger.aliases.set("shell-stable", pinned.digest, "office/jo", override=NASTY[:60])
    acme, rival = (
        ledger.open_run(opening(name), pinned.digest, tenant=name).id for name in ("acme", "rival")
    )
    open_ = ledger.open_run(opening("acme", agent="next"), pinned.digest, tenant="acme").id
    first = play(ledger, acme, pinned.digest, "echo rimo", NASTY)
    fork = play(ledger, acme, pinned.digest, "cat", fork=Source(episode=first, step=1))
    erased = play(ledger, acme, pinned.digest, "what is forgotten")
    hidden = play(ledger, rival, pinned.digest, "the secret of the rival")
    play(ledger, open_, pinned.digest, "ls", close=False)
    refs = [register(ledger, registry, run, store) for run in (acme, rival)]
    signer = log_signer(store, ledger, pinned.digest)
    signer.seal_all()
    alias_signer = AliasMoveSigner(ledger, signer.statement_signer)
    use(alias_signer, registry, refs[0], "shop")
    use(alias_signer, registry, refs[1], "robot")
    with signer.statement_signer.declaring("erasure", erased) as declare:
        ledger.erase_texts(erased, "office/jo", declare)
    library = Library(registry, ledger, store)
    return ConsoleStore(
        library, pinned.digest, acme, open_, rival, *refs, first, fork, erased, hidden
    )


def world_model() -> WorldModel:
    """The world model that the simulator serves."""
    data = records.digest("data")
    cpt = records.checkpoint("cpt", data=data)
    sft = records.checkpoint("sft", data=data, parents=[cpt.artifact])
    rl = records.checkpoint("rl", data=data, parents=[sft.artifact])
    return WorldModel(stages=(cpt, sft, rl), report=records.digest("report"))


def opening(tenant: str, agent: str = "shell-agent") -> RunOpening:
    return RunOpening(agent=agent, starting_weights=STARTED, opened_by=f"{tenant}/trainer")


def play(
    ledger: Ledger, run: str, simulator: str, *texts: str, close: bool = True, **fields: object
) -> str:
    """An episode with these texts, whose last observation has low confidence."""
    episode = make.ledger.open_episode(ledger, run, simulator, **fields)
    result = episode
    for number, text in enumerate(texts, 1):
        low = number == len(texts)
        confidence = Confidence(-0.31, 0.75, low)
        texts_ = f"echo {text}", text, text_digest(f"echo {text}"), text_digest(text)
        step = EpisodeStep(
            *(episode.id, number, *texts_, 0.5 if low else None, low, False, confidence, USAGE)
        ).link(result.head)
        result = result._replace(steps=(*result.steps, step))
    ledger.write([NewStep(run, step) for step in result.steps])
    if close:
        ledger.write([EpisodeClosed(run, episode.id, len(texts), result.head, "done")])
    return episode.id


def register(ledger: Ledger, registry: Registry, run: str, store: Path) -> VersionRef:
    """Closes a run with a validated agent."""
    simulator, weights = ledger.run(run).simulator, records.digest(f"weights of {run}")
    ledger.close_run(run, RunClosing(final_weights=weights))
    claim = Claim(
        agent="shell-agent", artifact=weights, starting_weights=STARTED, simulator=simulator
    )
    signer = log_signer(store, ledger, simulator)
    signer.seal(run)
    edge = signer.statement_signer.edge(ledger.run(run), claim)
    checkpoint = records.checkpoint(
        "agent", artifact=weights, parents=[STARTED], simulator=simulator
    )
    inputs = {"agent": weights, "simulator": simulator}
    folder = records.finished_step(store, "validate", records.agent_report().digest, **inputs)
    records.agent_report().write(folder / "report.json")
    agent = Agent(checkpoint=checkpoint, run=run, edge=edge)
    return registry.register_agent("shell-agent", agent, store)


def use(
    alias_signer: AliasMoveSigner,
    registry: Registry,
    ref: VersionRef,
    alias: str,
    by: str = "office/jo",
) -> None:
    """Records an agent's use, and mirrors it to the registry."""
    agent = registry.agent(ref)
    version = {"version": ref.version, "artifact": agent.artifact, "run": agent.run}
    name, move = (
        f"{ref.name}@{alias}",
        AgentMove.model_validate({"kind": "agent", "agent": version, "by": by}),
    )
    alias_signer.move(name, move, None, new_name(), dry_run=False)
    registry.set_alias(ref, alias)


def log_signer(store: Path, ledger: Ledger, simulator: str) -> LogCheckpointSigner:
    """The signer of the store's runs."""
    keys = store / "keys" / SIMULATOR_KEYS
    copies, trusted = WriteOnce(str(store / "mirror")), partial(load_trusted, keys)
    return LogCheckpointSigner(
        ledger, simulator, partial(ensure_signer, keys), copies, trusted=trusted
    )


def app(library_of_store: Library, folder: Path, **settings: object):
    """A console with the callers of the access file."""
    return create_app(library_of_store, Callers(make.access.Checked(folder), **settings))


def client(app, name: str = "") -> TestClient:
    """A browser of TENANT-ROLE; anonymous without a name."""
    headers = {"authorization": make.access.bearer(name)} if name else {}
    return TestClient(app, headers=headers, follow_redirects=False, raise_server_exceptions=False)
