"""A killed import resumes, with the same result as an uninterrupted one."""

import os
import signal
import subprocess
import sys

import pytest

from agentworld.data import imported
from agentworld.data.imported import import_trajectories
from agentworld.errors import InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.records.progress import ignore_progress
from agentworld.storage.source import digest_of
from agentworld.storage.trajectories import write_trajectories
from make import records

PER_CHUNK = 5
NUM_EPISODES = 23


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(imported, "_PER_CHUNK", PER_CHUNK)


@pytest.fixture
def recipe(tmp_path):
    """A recipe of two files, with some invalid lines and copies."""
    for name, first in (("a", 0), ("b", NUM_EPISODES)):
        path = tmp_path / f"logs/{name}.jsonl"
        episodes = [
            records.trajectory(seed=first + number, initial_state=f"{number % 7}")
            for number in range(NUM_EPISODES)
        ]
        write_trajectories(path, episodes)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(
            b"{}\n".join([b"".join(lines[n : n + 4]) for n in range(0, NUM_EPISODES, 4)])
        )
    return CollectRecipe(trajectories=str(tmp_path / "logs"), held_out_share=0.3)


class Killed(BaseException):
    """An exception that nothing catches."""


def kill_after(num):
    def tick(_done, _total):
        nonlocal num
        num -= 1
        if num < 0:
            raise Killed

    return tick


def run(recipe, out, tick=ignore_progress):
    return import_trajectories(recipe, digest_of(recipe.trajectories), out, tick)


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("num", [0, 3, 7, 20, 28, 31, 45, 55])
def test_an_import_killed_anywhere_and_resumed_gives_the_same_folder(recipe, tmp_path, num):
    digest = run(recipe, tmp_path / "whole")
    with pytest.raises(Killed):
        run(recipe, tmp_path / "out", kill_after(num))
    assert run(recipe, tmp_path / "out") == digest
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def the_same(recipe, _tmp_path):
    return recipe


def another_address(recipe, tmp_path):
    folder = (tmp_path / "logs").rename(tmp_path / "moved")
    return recipe.model_copy(update={"trajectories": str(folder)})


def more_workers(recipe, _tmp_path):
    return recipe.model_copy(update={"num_workers": 2})


@pytest.mark.parametrize("change", [the_same, another_address, more_workers])
@pytest.mark.parametrize("is_marked", [False, True])
def test_a_resumed_import_continues_after_the_finished_chunks(
    recipe, tmp_path, monkeypatch, change, is_marked
):
    episodes = [records.trajectory(seed=100 + number, held_out=is_marked) for number in range(2)]
    write_trajectories(tmp_path / "logs/0.jsonl", episodes)
    with pytest.raises(Killed):
        run(recipe, tmp_path / "out", kill_after(47 + 2 * is_marked))
    recipe = change(recipe, tmp_path)
    names = []
    monkeypatch.setattr(
        imported,
        "write_trajectories",
        lambda path, chunk: (names.append(path.name), write_trajectories(path, chunk)),
    )
    run(recipe, tmp_path / "out")
    assert names[0] == "recorded-00007.jsonl"
    assert names[-1] == "recorded-00009.jsonl"


def test_a_resumed_import_keeps_the_held_out_marks_of_episodes(recipe, tmp_path):
    episodes = [records.trajectory(seed=100, held_out=True)]
    write_trajectories(tmp_path / "logs/c.jsonl", episodes)
    digest = run(recipe, tmp_path / "whole")
    with pytest.raises(Killed):
        run(recipe, tmp_path / "out", kill_after(100))
    assert run(recipe, tmp_path / "out") == digest


def another_recipe(recipe, _tmp_path):
    return recipe.model_copy(update={"held_out_share": 0.6})


def another_source(recipe, tmp_path):
    write_trajectories(tmp_path / "logs/a.jsonl", [records.trajectory(seed=7)])
    return recipe


def a_lost_quarantine(recipe, tmp_path):
    (tmp_path / "out/quarantine.ndjson").unlink()
    return recipe


def a_lost_chunk(recipe, tmp_path):
    (tmp_path / "out/recorded-00000.jsonl").unlink()
    return recipe


def a_changed_chunk(recipe, tmp_path):
    write_trajectories(tmp_path / "out/recorded-00000.jsonl", [records.trajectory(seed=9)])
    return recipe


@pytest.mark.parametrize(
    "change",
    [another_recipe, another_source, a_lost_chunk, a_changed_chunk, a_lost_quarantine],
)
def test_the_state_of_another_or_damaged_import_is_not_resumed(recipe, tmp_path, change):
    with pytest.raises(Killed):
        run(recipe, tmp_path / "out", kill_after(45))
    recipe = change(recipe, tmp_path)
    digest = run(recipe, tmp_path / "whole")
    assert run(recipe, tmp_path / "out") == digest
    names = {*files(tmp_path / "whole")}
    assert {name: files(tmp_path / "out")[name] for name in names} == files(tmp_path / "whole")


def test_a_source_changed_during_the_import_leaves_no_state_to_resume(recipe, tmp_path):
    def tick(_done, _total):
        write_trajectories(tmp_path / "logs/d.jsonl", [records.trajectory(seed=77)])

    with pytest.raises(InputError, match="changed while it was read"):
        run(recipe, tmp_path / "out", tick)
    assert not (tmp_path / "out/import.json").exists()


PROGRAM = """
import os, signal, sys
from pathlib import Path
from agentworld.data import imported
from agentworld.recipes.data import CollectRecipe
from agentworld.storage.source import digest_of

imported._PER_CHUNK = 5
calls = 0
def tick(done, total):
    global calls
    calls += 1
    if calls == 40:
        os.kill(os.getpid(), signal.SIGKILL)

recipe = CollectRecipe.model_validate_json(sys.argv[1])
imported.import_trajectories(recipe, digest_of(recipe.trajectories), Path(sys.argv[2]), tick)
"""


@pytest.mark.waits
def test_a_killed_process_leaves_a_state_that_the_next_process_resumes(recipe, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM, recipe.model_dump_json(), str(tmp_path / "out")]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    assert (tmp_path / "out/import.json").is_file()
    digest = run(recipe, tmp_path / "whole")
    assert run(recipe, tmp_path / "out") == digest
    assert files(tmp_path / "out") == files(tmp_path / "whole")
