"""A store with a simulator that answers, and the program as a user calls it."""

import asyncio
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
import typer.main

import make.ledger
import make.service
from agentworld.client.trajectory import TrajectoryLog
from agentworld_cli.main import main
from make import records

ODD = "cat \x1b[2J\x00\ud800"
"""Control characters that would clear a screen, and a lone surrogate."""


def parrot(messages):
    """Answers with the action, without its `echo`."""
    return f"{messages[-1]['content'].removeprefix('echo ')}\n[0] ~"


class CommandResult(NamedTuple):
    """The result of a command."""

    code: int
    out: str
    error: str


Call = Callable[[str], CommandResult]


@pytest.fixture(scope="session", autouse=True)
def commands_once() -> Iterator[None]:
    """Builds Typer's commands once, and not in each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls `agentworld` with these words."""

    def run_command(words: str) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["agentworld", *shlex.split(words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_info:
            main()
        output = capsys.readouterr()
        assert "Traceback" not in output.err
        return CommandResult(int(exit_info.value.code or 0), output.out, output.err)

    return run_command


class EpisodeResult(NamedTuple):
    """A store with a played run: its episode, and its agent's own log."""

    store: Path
    url: str
    run: str
    episode: str
    trajectory: Path

    @property
    def ledger(self):
        return make.service.ledger(self.store)


@pytest.fixture(scope="session")
def first_example(tmp_path_factory: pytest.TempPathFactory) -> EpisodeResult:
    """The original that `example` copies for each test."""
    store = tmp_path_factory.mktemp("played")
    service = make.service.service(store, parrot)

    async def play() -> tuple[str, str]:
        with TrajectoryLog(store / "log") as trajectory:
            client = service.client(trajectory=trajectory)
            episode = await make.service.play(client, "ls", ODD, task=records.task())
            await client.step(episode, "echo besa")
            await client.close()
            assert client.run
            return client.run.id, episode

    run, episode = asyncio.run(play())
    service.seal()
    return EpisodeResult(store, "", run, episode, store / "log")


@pytest.fixture
def example(first_example: EpisodeResult, tmp_path: Path) -> Iterator[EpisodeResult]:
    """An episode of three steps of an open run, in a store with signed logs."""
    make.ledger.copy_store(first_example.store, tmp_path)
    with make.service.listening(make.service.service(tmp_path, parrot).app) as url:
        yield first_example._replace(store=tmp_path, url=url, trajectory=tmp_path / "log")
