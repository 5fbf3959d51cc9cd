"""Where a step with live shells runs; only its work needs a sandbox."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworld.domains import sandbox
from agentworld.errors import EnvironmentUnavailable, InputError
from agentworld.runner.folders import CHECKPOINT, SELECTED_SIMULATOR, SelectedSimulator
from agentworld.steps.run import folder_for
from agentworld.steps.table import names_of
from agentworld.storage.receipts import read_receipt
from agentworld.storage.trajectories import write_trajectories
from agentworld.storage.working_copy import address_of, open_copy
from agentworld_pipelines.live_step import main
from agentworld_pipelines.placement import Place
from agentworld_pipelines.stages import live
from make import records

PLACE = Place(image="x").model_dump_json(exclude_defaults=True)


@pytest.fixture(autouse=True)
def _no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    sandbox.check_sandbox.cache_clear()
    yield
    sandbox.check_sandbox.cache_clear()


def arguments(step: str, store: Path) -> list[str]:
    """The arguments of a step with all inputs."""
    if step == "collect":
        return ["smoke", str(store)]
    simulator = records.pinned(store).digest
    if step == "measure":
        return ["smoke", str(store), simulator, "monday"]
    imitation = records.finished_step(store, "imitate", records.digest("imitated"))
    SelectedSimulator(simulator=simulator).write(imitation / SELECTED_SIMULATOR)
    base = records.checkpoint("imitation", parents=[records.digest("artifact of rl")])
    base.write(imitation / CHECKPOINT)
    agent = records.finished_step(store, "agent", records.digest("trained"))
    records.checkpoint("agent", simulator=simulator).write(agent / CHECKPOINT)
    return ["smoke", str(store), str(imitation), str(agent)]


def collect_folder(store: Path) -> Path:
    """The folder that the step `collect` fills for the profile `smoke`."""
    return folder_for("collect", "smoke", str(store))


@pytest.mark.parametrize("place", ["", PLACE], ids=["none", "without the store"])
@pytest.mark.parametrize("step", names_of("live"))
def test_a_step_without_a_sandbox_and_a_usable_place_fails_before_any_work(step, place, tmp_path):
    with pytest.raises(EnvironmentUnavailable, match="no sandbox: bubblewrap"):
        live(step, *arguments(step, tmp_path), place=place)
    assert not (tmp_path / "steps" / step).exists()


def test_a_finished_step_needs_no_sandbox(tmp_path):
    folder = collect_folder(tmp_path)
    records.receipt("collect", records.digest("made")).write(folder / "receipt.json")
    for place in ("", PLACE):
        assert live("collect", "smoke", str(tmp_path), place=place) == str(folder)


@pytest.mark.compute
def test_the_result_of_a_job_is_found_in_the_bucket_of_its_store(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_SCRATCH", str(tmp_path / "this-pod"))
    url = f"memory://{tmp_path.name}/store"
    results: list[str | None] = []

    def run_in_job(step: str, arguments: tuple[str, ...], _: str, finished) -> str:
        assert [address_of(argument) for argument in arguments] == ["smoke", url]
        results.append(finished())
        job = open_copy(url, tmp_path / "the-job")
        folder = collect_folder(job.root)
        records.receipt(step, records.digest("made")).write(folder / "receipt.json")
        job.put(folder)
        results.append(finished())
        assert results[1]
        return results[1]

    monkeypatch.setattr("agentworld_pipelines.follow_job.run_in_job", run_in_job)
    folder = live("collect", "smoke", url, place=PLACE)
    assert folder.startswith(f"{url}/steps/collect/")
    assert results[0] is None


def test_recordings_are_imported_without_a_sandbox(tmp_path):
    write_trajectories(tmp_path / "log.jsonl", [records.trajectory(seed=n) for n in range(9)])
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"name: mine\ncollect: {{trajectories: {tmp_path / 'log.jsonl'}}}\n")
    folder = live("collect", str(recipe), str(tmp_path / "store"), place=PLACE)
    assert read_receipt(Path(folder)).step == "collect"


def test_a_step_run_alone_prints_its_folder(tmp_path, capsys):
    folder = collect_folder(tmp_path)
    records.receipt("collect", records.digest("made")).write(folder / "receipt.json")
    main(["collect", "smoke", str(tmp_path)])
    assert capsys.readouterr().out == f"{folder}\n"


@pytest.mark.parametrize("words", [(), ("prepare", "demo", "store"), ("no step",)])
def test_a_step_without_live_shells_cannot_be_run_alone(words):
    with pytest.raises(InputError, match="give one of: collect, validate, measure"):
        main(words)


@pytest.mark.compute
def test_a_failed_process_prints_one_sentence(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "agentworld_pipelines.live_step", "collect", "smoke", tmp_path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("error: no sandbox: bubblewrap (bwrap) is not installed")
    assert len(result.stderr.splitlines()) == 1
