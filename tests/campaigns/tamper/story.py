"""The history of the world before an attack.

Two simulators serve two tenants. Runs are open, closed with a claim or with a signature; episodes
are open, done, ended by a limit or closed, forked, replayed and erased; texts are short and long,
confidence is high and low. Agents are registered, one of them twice, and some are in use; one was
withdrawn. A backup was restored, and its losses were declared.
"""

import asyncio
from pathlib import Path

from agentworld.lineage.base import VersionRef
from agentworld.operations.declarations import declare_restored
from agentworld.records.run import AgentRun
from agentworld.signing.keys import SIMULATOR_KEYS, rotate
from campaigns.tamper.databases import Database
from campaigns.tamper.player import MANIFESTS, Player
from campaigns.tamper.world import World

_RUNS = 14
_CLOSED = 11
_EVALUATION = 5
_BACKUP = "backup"
# Changes of uses by run; null ends a use.
_USES = {
    0: [("agent-0", "production", 1)],
    2: [("agent-2", "production", 1)],
    4: [("agent-0", "production", 2), ("agent-0", "shop", 2)],
    6: [("agent-0", "shop", None), ("agent-2", "production", 2)],
    7: [("agent-3", "production", 2)],
    8: [("agent-0", "production", 3), ("agent-0", "shop", 1)],
    9: [("agent-1", "robot", 2)],
    10: [("agent-2", "production", 1), ("agent-3", "shop", 1), ("agent-3", "shop", None)],
}


def build(folder: Path, url: str = "") -> World:
    """Builds a world in a new folder with all statements signed. Its ledger is a file there, or at
    a URL.
    """
    folder.mkdir(parents=True)
    world = World(folder, Database(url) if url else Database.file(folder))
    world.agents.touch()
    with world.named():
        snapshots = _played(world)
    world.database.let_go()
    return world._replace(snapshots=snapshots)


def _played(world: World) -> tuple[str, ...]:
    player, snapshots = Player(world), []
    unsigned_run = _before_it_was_signed(player)
    for number in range(_RUNS):
        _run(player, number)
        if number % 2:
            snapshots.append(f"s{number:02}")
            world.database.keep(snapshots[-1])
        if number % 3 == 0:
            player.move_all(number)
        if number == 3:
            rotate(world.folder / "keys" / SIMULATOR_KEYS)
            player.name_key()
        for use in _USES.get(number, ()):
            _use(player, *use)
        if number == 7:
            player = _lost(player)
    erased_run = player.ledger.runs()[-2]  # by their names, the newest first
    player.erase(erased_run.id)
    for run in (
        unsigned_run,
        erased_run,
    ):  # again with more data: the newer edge of each agent counts
        player.register(run, "data")
        player.register(run, "data", "more data")
    player.validate(VersionRef(name="agent-3", version=2), _RUNS)
    player.withdraw(player.close(asyncio.run(player.train(_RUNS + 3)), signed=True), "data")
    player.log_signer.seal_all()
    asyncio.run(player.end())
    return tuple(snapshots)


def _before_it_was_signed(player: Player) -> AgentRun:
    """Sets an alias and erases an episode before any statement is signed."""
    player.name_key()
    player.ledger.aliases.set("shell-stable", MANIFESTS[0].digest, "before")
    run = player.close(asyncio.run(player.train(_RUNS)), signed=False)
    closed_episodes = (episode.id for episode in player.ledger.episodes(run.id) if episode.closed)
    player.ledger.erase_texts(next(closed_episodes))
    player.log_signer.statement_signer.ensure_genesis()
    return run


def _run(player: Player, number: int) -> AgentRun:
    """A run of one of two tenants; the last ones stay open."""
    purpose = "evaluation" if number == _EVALUATION else "training"
    tenant = "acme" if number % 3 == 0 else "local"
    run = asyncio.run(player.train(number, tenant, purpose))
    player.log_signer.seal_all()
    if number >= _CLOSED:
        return player.ledger.run(run)
    closed_run = player.close(run, signed=number % 2 == 0)
    if number == _EVALUATION:
        player.claim(closed_run, "data")
    else:
        player.register(closed_run, "data")
    return closed_run


def _use(player: Player, name: str, alias: str, version: int | None) -> None:
    if version is None:
        player.retire(name, alias)
    else:
        player.use(VersionRef(name=name, version=version), alias)


def _lost(player: Player) -> Player:
    """Runs, moves and uses that a restored backup lacks; all losses are declared."""
    world = player.world
    open_run = asyncio.run(player.train(_RUNS + 1))
    player.log_signer.seal_all()
    world.database.keep(_BACKUP)
    asyncio.run(player.go_on(open_run, _RUNS + 1))
    run = asyncio.run(player.train(_RUNS + 2))
    player.log_signer.seal_all()
    player.claim(player.close(run, signed=True))
    player.erase(run)
    player.move("shell-stable", 0, "ada")
    player.use(VersionRef(name="agent-3", version=1), "production")
    asyncio.run(player.end())
    world.database.keep(world.lost)
    world.database.put_back(_BACKUP)
    declare_restored(world.folder, "the disk was lost", "ada")
    return Player(world)
