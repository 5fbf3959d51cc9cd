"""What nobody tampered with: of none of it may the audit tell a problem."""

import asyncio
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import make_ledger
from agentworld.audit.intact import verify_ledger
from agentworld.evidence.keys import SIMULATOR_KEYS, rotate
from agentworld.steps.declared import restored
from agentworld.steps.ledger import open_evidence, open_ledger
from tamper.world import Player, World


def false_alarms(folder: Path, world: World) -> list[str]:
    """What the audit says of a copy of the world that goes on."""
    copy = World(folder / "honest")
    make_ledger.copy_store(world.folder, copy.folder)
    told = [f"untouched: {problem}" for problem in _problems(copy)]
    for situation, problems in _life(copy):
        told += [f"{situation}: {problem}" for problem in problems]
    shutil.rmtree(copy.folder)
    return told


def _life(world: World) -> Iterator[tuple[str, list[str]]]:
    player = Player(world.folder)
    run = asyncio.run(player.train(20))
    yield "with an end that is not signed yet", _problems(world)
    player.sealer.seal_all()
    rotate(world.folder / "keys" / SIMULATOR_KEYS)
    yield "after a rotation", _problems(world)
    player.name_key()
    made = player.close(run, signed=True)
    player.register(made, "data")
    yield "signed with the new key", _problems(world)
    player.erase(run)
    yield "after an erasure that was declared", _problems(world)
    player.move("terminal-stable", 1, "ada")
    yield "after a move of a name", _problems(world)
    yield "while it is served", _while_served(player, world)
    yield "after it was served", _problems(world)
    yield "after a restore that was declared", _restored(player, world)


def _restored(player: Player, world: World) -> list[str]:
    """An old backup is put in the ledger's place, and who did it says so."""
    backup = world.folder / "backup.db"
    world.back_up(backup)
    run = asyncio.run(player.train(40))
    player.sealer.seal_all()
    player.register(player.close(run, signed=True))
    player.erase(run)
    player.move("terminal-stable", 0, "ada")
    player.ledger.close()
    for file in world.folder.glob("ledger.db*"):
        file.unlink()
    backup.rename(world.ledger_file)
    assert _problems(world)
    restored(world.folder, "the disk was lost", "ada")
    return _problems(world)


def _while_served(player: Player, world: World) -> list[str]:
    """Looks again and again while runs are opened, played, signed, closed and registered."""

    def serve() -> None:
        for number in range(30, 34):
            run = asyncio.run(player.train(number))
            player.sealer.seal_all()
            player.register(player.close(run, signed=number % 2 == 0))

    told, thread = [], threading.Thread(target=serve)
    thread.start()
    while thread.is_alive():
        told += _problems(world)
    thread.join()
    return told


def _problems(world: World) -> list[str]:
    ledger = open_ledger(world.folder)
    try:
        return [*verify_ledger(ledger, open_evidence(world.folder)).problems]
    finally:
        ledger.close()
