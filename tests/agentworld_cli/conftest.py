"""A store with a simulator that answers, and the program as a user calls it."""

import asyncio
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import make
import make_service
from agentworld.client.simulator import SimulatorClient
from agentworld.client.trajectory import TrajectoryLog
from agentworld_cli.main import main

ODD = "cat \x1b[2J\x00\ud800"
"""What would clear a screen, and is no Unicode."""


def parrot(messages):
    """Shows the action, without its `echo`."""
    return f"{messages[-1]['content'].removeprefix('echo ')}\n[0] ~"


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    error: str


Call = Callable[[str], Done]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls `agentworld` with these words."""

    def called(words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["agentworld", *shlex.split(words)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return Done(int(ended.value.code or 0), said.out, said.err)

    return called


class Played(NamedTuple):
    """A store with a run that was played: its episode, and its agent's own log."""

    store: Path
    url: str
    run: str
    episode: str
    trajectory: Path

    @property
    def ledger(self):
        return make_service.open_ledger(self.store)


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    """An episode of three steps of an open run, in a store whose logs are signed."""
    served = make_service.service(tmp_path, parrot)

    async def work(url: str) -> tuple[str, str]:
        with TrajectoryLog(tmp_path / "log") as trajectory:
            client = SimulatorClient(url, trajectory=trajectory)
            episode = await make_service.play(client, "ls", ODD, task=make.task())
            await client.step(episode, "echo besa")
            await client.close()
            assert client.run
            return client.run.id, episode

    with make_service.listening(served.app) as url:
        run, episode = asyncio.run(work(url))
        served.seal()
        yield Played(tmp_path, url, run, episode, tmp_path / "log")
