import signal
import subprocess
import sys

import psutil
import pytest

from agentworld.data.collect import collect
from agentworld.errors import InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.records.collected import Collected
from agentworld.records.progress import ignore_progress
from agentworld.storage.trajectories import MANIFEST, read_collected, read_trajectories
from waiting import DEADLINE, wait_for

RECIPE = CollectRecipe(
    domain="shell", num_transitions=60, num_held_out_episodes=7, turns_per_episode=5, num_workers=1
)


def run(folder, recipe=RECIPE, tick=ignore_progress):
    return collect(recipe, folder, tick, episodes_per_chunk=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("collected")
    run(folder)
    return folder


@pytest.mark.waits
def test_the_collection_ends_with_the_chunk_that_reaches_enough_transitions(folder):
    collected = read_collected(folder)
    lengths = [len(episode.turns) for episode in read_trajectories(folder) if not episode.held_out]
    assert collected.num_transitions == sum(lengths) >= 60
    assert sum(lengths[:-5]) < 60


@pytest.mark.waits
def test_held_out_episodes_are_in_separate_chunks(folder):
    chunks = read_collected(folder).chunks
    marks = {name: set() for name in chunks}
    for name in chunks:
        marks[name] = {episode.held_out for episode in read_trajectories(folder / name)}
    assert marks["held-out-00000.jsonl"] == marks["held-out-00001.jsonl"] == {True}
    assert marks["episodes-00000.jsonl"] == {False}
    assert read_collected(folder).num_held_out_trajectories == 7


@pytest.mark.waits
def test_the_folder_contains_only_the_chunks_the_manifest_and_the_recipe(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {*read_collected(folder).chunks, MANIFEST, "recipe.json"}


@pytest.mark.waits
def test_the_result_does_not_depend_on_the_number_of_workers(folder, tmp_path):
    digest = run(tmp_path, RECIPE.model_copy(update={"num_workers": 3}))
    assert digest == read_collected(folder).digest


@pytest.mark.waits
def test_a_finished_chunk_is_used_again(folder, tmp_path):
    chunk = "episodes-00000.jsonl"
    (tmp_path / chunk).write_bytes((folder / chunk).read_bytes())
    modified_ns = (tmp_path / chunk).stat().st_mtime_ns
    assert run(tmp_path) == read_collected(folder).digest
    assert (tmp_path / chunk).stat().st_mtime_ns == modified_ns


@pytest.mark.waits
def test_the_manifest_names_the_domain_of_the_episodes(folder):
    assert read_collected(folder).domains == ("shell",)


@pytest.mark.parametrize(
    ("domain", "problem"),
    [(None, "names neither collect.domain"), ("text", "no domain with an environment 'text'")],
)
def test_a_recipe_without_environments_is_refused_before_anything_is_written(
    tmp_path, domain, problem
):
    with pytest.raises(InputError, match=problem):
        run(tmp_path / "out", RECIPE.model_copy(update={"domain": domain}))
    assert not (tmp_path / "out").exists()


@pytest.mark.waits
def test_progress_is_reported_to_its_end(folder):
    ticks = []
    run(folder, tick=lambda done, total: ticks.append((done, total)))
    assert ticks[-1] == (60, 60)
    assert ticks == sorted(ticks)


@pytest.mark.waits
def test_a_folder_with_episodes_of_another_recipe_is_refused(folder):
    with pytest.raises(InputError, match="holds episodes of another recipe"):
        run(folder, RECIPE.model_copy(update={"seed": 1}))


_PROGRAM = """
import sys
from pathlib import Path
from agentworld.data.collect import collect
from agentworld.recipes.data import CollectRecipe
from agentworld.records.progress import ignore_progress

if __name__ == "__main__":
    recipe = CollectRecipe.model_validate_json(sys.argv[2])
    collect(recipe, Path(sys.argv[1]), ignore_progress, episodes_per_chunk=5)
"""


@pytest.mark.waits
def test_a_killed_collection_leaves_no_process_and_can_be_continued(tmp_path):
    recipe = RECIPE.model_copy(update={"num_transitions": 1_000, "num_workers": 2})
    (tmp_path / "run.py").write_text(_PROGRAM)
    out = tmp_path / "out"
    command = [sys.executable, tmp_path / "run.py", out, recipe.model_dump_json()]
    process = subprocess.Popen(command)
    wait_for((out / "episodes-00001.jsonl").exists)
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, survivors = psutil.wait_procs(children, timeout=DEADLINE)
    assert not survivors
    assert not (out / MANIFEST).exists()
    assert collect(recipe, out, ignore_progress, episodes_per_chunk=5) == run(
        tmp_path / "new", recipe
    )
    assert Collected.read(out / MANIFEST).num_transitions >= 1_000
