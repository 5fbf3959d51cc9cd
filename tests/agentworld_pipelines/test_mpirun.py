"""A TrainJob's own command on two nodes, whose processes Open MPI starts by ssh."""

import os
import re
import signal
from pathlib import Path

import pytest

from agentworld.runner.folders import checkpoint_of
from agentworld.steps.run import run_by_name
from agentworld.train.resume import newest_checkpoint
from machines.mpi_pods import built, launch
from machines.processes import processes_with
from make.training import Training, training
from waiting import wait_for

pytestmark = pytest.mark.compute

ENDLESS = {"epochs": 1000, "checkpoint_every": 20}
AS_ITS_RUNTIME_SAYS = ("node", "launcher")


def folder_of(given: Training) -> Path:
    (folder,) = (path for path in Path(given.store, "steps/cpt").iterdir() if path.is_dir())
    return folder


def test_the_processes_of_two_nodes_make_the_record_that_one_makes(tmp_path: Path) -> None:
    given = training(tmp_path / "store")
    launched = launch(built(given, tmp_path), tmp_path / "pods", AS_ITS_RUNTIME_SAYS)
    _, said = launched.communicate(timeout=120)
    assert launched.returncode == 0, said
    assert "could not find environment variable" not in said
    together = checkpoint_of(folder_of(given))
    alone = checkpoint_of(Path(run_by_name("cpt", *training(tmp_path / "alone"))))
    assert together.metrics == pytest.approx(alone.metrics, rel=0.01)
    noise = {"artifact": alone.artifact, "metrics": alone.metrics}
    assert together.model_copy(update=noise) == alone


@pytest.mark.parametrize(
    ("hosts", "told"),
    [(AS_ITS_RUNTIME_SAYS, "sh"), (("node",), "/bin/sh")],
    ids=["the launcher", "a node that is not the launcher's"],
)
def test_a_pod_that_is_told_to_end_leaves_a_checkpoint_of_all(
    tmp_path: Path, hosts: tuple[str, ...], told: str
) -> None:
    given = training(tmp_path / "store", cpt=ENDLESS)
    launched = launch(built(given, tmp_path), tmp_path / "pods", hosts)
    checkpoints = Path(given.store) / "steps" / "cpt"
    wait_for(lambda: list(checkpoints.glob("*/checkpoints/*/trainer_state.json")), seconds=120)
    members = processes_with("agentworld.steps.member", launched.pid)
    trained = [each for each in members if each.name().startswith("python")]
    assert [set(each.cpu_affinity()) for each in trained] == [os.sched_getaffinity(0)] * 2
    first = processes_with(told, launched.pid)[0]
    first.send_signal(signal.SIGTERM)
    _, said = launched.communicate(timeout=60)
    assert launched.returncode == 2, said
    at = re.search(r"error: preempted; run it again: it resumes from step (\d+)", said)
    assert at
    folder = folder_of(given) / "checkpoints"
    assert newest_checkpoint(folder) == f"checkpoint-{at[1]}"


def test_what_a_process_is_given_wrong_is_said_and_ends_all(tmp_path: Path) -> None:
    given = training(tmp_path / "store")._replace(recipe="no recipe")
    launched = launch(built(given, tmp_path), tmp_path / "pods", AS_ITS_RUNTIME_SAYS)
    _, said = launched.communicate(timeout=60)
    assert launched.returncode == 2
    assert "error: " in said
