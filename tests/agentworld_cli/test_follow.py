import subprocess
from pathlib import Path

import pytest

import make.job
from agentworld.runner.failure import StepFailed
from agentworld.runner.progress import ProgressFile
from agentworld.steps.table import AFTER_GATE
from agentworld_cli.follow import follow


def make_job(store: Path, folders: dict[str, Path], status: int = 0) -> subprocess.Popen[bytes]:
    """A job whose steps have these folders."""
    for step, folder in folders.items():
        ProgressFile(store, step).finish("finished", folder, 1.0)
    return subprocess.Popen(["sh", "-c", f"exit {status}"])


def test_a_finished_job_has_a_folder_for_each_step(tmp_path):
    folders = make.job.finished_job(tmp_path)
    assert follow(make_job(tmp_path, folders), tmp_path).folders == folders


def test_a_job_ended_by_its_gate_succeeds_and_prints_the_skipped_steps(tmp_path, capsys):
    folders = make.job.refused_job(tmp_path)
    assert follow(make_job(tmp_path, folders), tmp_path).folders == folders
    lines = capsys.readouterr().err.splitlines()
    assert lines[-len(AFTER_GATE) :] == [f"{step:<14} skipped" for step in AFTER_GATE]


@pytest.mark.parametrize("status", [0, 1])
def test_a_job_that_stops_after_a_passed_gate_fails(tmp_path, status):
    folders = make.job.finished_job(tmp_path)
    earlier_folders = {step: folder for step, folder in folders.items() if step not in AFTER_GATE}
    with pytest.raises(StepFailed, match="register stopped: its process ended without"):
        follow(make_job(tmp_path, earlier_folders, status), tmp_path)
