"""Honest activity, in which the audit must find no problem."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import closing

from agentworld.audit.checks.ledger import verify_ledger
from agentworld.audit.checks.store import verify_everything
from agentworld.lineage.base import VersionRef
from agentworld.operations.declarations import declare_restored
from agentworld.operations.ledger import open_ledger
from agentworld.signing.keys import SIMULATOR_KEYS, rotate
from campaigns.tamper.player import Player
from campaigns.tamper.world import World


def false_alarms(world: World) -> list[str]:
    """The audit's findings in an active world, which changes."""
    with world.named():
        alarms = [f"untouched: {problem}" for problem in _problems(world)]
        for situation, problems in _life(world):
            alarms += [f"{situation}: {problem}" for problem in problems]
    return alarms


def _life(world: World) -> Iterator[tuple[str, list[str]]]:
    player = Player(world)
    run = asyncio.run(player.train(20))
    yield "with an end that is not signed yet", _problems(world)
    player.log_signer.seal_all()
    rotate(world.folder / "keys" / SIMULATOR_KEYS)
    yield "after a rotation", _problems(world)
    player.name_key()
    closed_run = player.close(run, signed=True)
    ref = player.register(closed_run, "data")
    yield "signed with the new key", _problems(world)
    player.register(closed_run, "data", "more data")
    yield "registered again with more data", _problems(world)
    player.use(ref, "production")
    yield "after an agent was used", _problems(world)
    player.move("shell-stable", 1, "ada")
    yield "after a move of a name", _problems(world)
    player.validate(ref, 1)
    yield "after it was validated anew", _problems(world)
    player.retire(ref.name, "production")
    yield "after it was used no more", _problems(world)
    player.erase(run)
    yield "after an erasure that was declared", _problems(world)
    yield "while it is served", _while_served(player, world)
    yield "after it was served", _problems(world)
    yield "after a restore that was declared", _restored(player, world)
    player = Player(world)
    player.use(VersionRef(name="agent-0", version=2), "production")
    player.move("shell-stable", 0, "ada")
    yield "after it went on from there", _problems(world)
    yield "after a second restore", _restored(player, world, "twice")
    asyncio.run(player.end())


def _restored(player: Player, world: World, backup: str = "once") -> list[str]:
    """An old backup replaces the ledger, with a declaration."""
    agents = world.agents.read_text()
    world.database.keep(backup)
    run = asyncio.run(player.train(40))
    player.log_signer.seal_all()
    ref = player.register(player.close(run, signed=True))
    player.use(ref, "production")
    player.erase(run)
    player.move("shell-stable", 0, "ada")
    asyncio.run(player.end())
    world.database.put_back(backup)
    world.agents.write_text(agents)  # an agent of a lost run has no evidence
    assert _problems(world)
    declare_restored(world.folder, "the disk was lost", "ada")
    return _problems(world)


def _while_served(player: Player, world: World) -> list[str]:
    """Audits repeatedly while runs are opened, played, signed, closed, registered and used."""

    def serve() -> None:
        for number in range(30, 34):
            run = asyncio.run(player.train(number))
            player.log_signer.seal_all()
            player.register(player.close(run, signed=number % 2 == 0))
            player.move("shell-stable", number, "ada")

    alarms, thread = [], threading.Thread(target=serve)
    thread.start()
    while thread.is_alive():
        alarms += _problems_of_ledger(world)
    thread.join()
    return alarms


def _problems_of_ledger(world: World) -> list[str]:
    """A registration just after its edge was signed looks like a missing one."""
    with closing(open_ledger(world.folder)) as ledger:
        return [*verify_ledger(ledger, world.evidence).problems]


def _problems(world: World) -> list[str]:
    with closing(open_ledger(world.folder)) as ledger:
        return [*verify_everything(world.sources(ledger)).problems]
