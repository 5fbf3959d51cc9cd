"""Steps on a disk that is full for a while: a small disk, in a separate process."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from agentworld.errors import StoreError
from agentworld.records.base import Digest, digest_bytes
from agentworld.records.progress import OnProgress
from agentworld.runner.step import output_of, run_step
from waiting import JOB_DEADLINE

pytestmark = pytest.mark.waits  # mounts a disk, which needs root

FILLER = "filler"
STORE_MIB = 24


class Status(NamedTuple):
    """Kubeflow's status of a run."""

    state: str
    error_message: str


def fill(store: Path, remaining_bytes: int) -> None:
    """Fills the disk except for the given number of bytes."""
    free = os.statvfs(store).f_bavail * os.statvfs(store).f_frsize
    (store / FILLER).write_bytes(bytes(max(0, free - remaining_bytes)))


def fail_then_succeed(store: Path, step: str, work) -> Path:
    """The folder of a step that failed on the full disk and ran again after space was freed."""
    message = f"^the disk that holds {store} is full; free space and run it again, what is done is"
    with pytest.raises(StoreError, match=message):
        run_step(store, step, [], {}, work)
    (store / FILLER).unlink()
    return run_step(store, step, [], {}, work)


def while_a_version_is_registered(store: Path) -> None:
    from agentworld.lineage.base import WorldModel
    from agentworld.operations.registry import open_registry
    from make import records

    model = store / "model"
    model.mkdir()
    (model / "weights").write_bytes(os.urandom(2 << 20))
    world = WorldModel(stages=(records.checkpoint("rl"),), report=records.digest("report"))
    registry = open_registry(store)
    registry.world_models_of(world.artifact)  # makes the database
    fill(store, 1 << 20)

    def work(_out: Path, _tick: OnProgress) -> Digest:
        registry.register_world_model("worlds", world, model)
        return world.artifact

    fail_then_succeed(store, "register", work)
    assert [str(ref) for ref in registry.world_models_of(world.artifact)] == ["worlds@1"]
    assert len(list((store / "mlflow-artifacts").rglob("weights"))) == 1


def while_a_receipt_is_written(store: Path) -> None:
    attempts: list[bool] = []

    def work(out: Path, _tick: OnProgress) -> Digest:
        attempts.append((out / "made").exists())
        (out / "made").write_bytes(b"made")
        if len(attempts) == 1:
            fill(store, 0)
        return digest_bytes(b"made")

    folder = fail_then_succeed(store, "collect", work)
    assert attempts == [False, True]
    assert output_of(str(folder)) == digest_bytes(b"made")


def while_the_end_of_a_run_is_written_down(store: Path) -> None:
    from agentworld.steps.conclude import conclude, conclusions

    values = ("world_model", "demo", str(store), "job-1", Status("FAILED", "the task cpt failed"))
    fill(store, 0)
    with pytest.raises(StoreError, match=f"^the disk that holds {store} is full; free space and"):
        conclude(*values)
    (store / FILLER).unlink()
    assert conclusions(store) == []
    conclude(*values)
    assert [conclusion.state for conclusion in conclusions(store)] == ["failed"]


@pytest.mark.parametrize(
    "instant",
    [
        "while_a_version_is_registered",
        "while_a_receipt_is_written",
        "while_the_end_of_a_run_is_written_down",
    ],
)
def test_a_full_disk_is_reported_and_work_succeeds_after_space_is_freed(
    tmp_path: Path, instant: str
) -> None:
    program = "import sys; from pathlib import Path; import test_full_disk as here; "
    program += f"here.{instant}(Path(sys.argv[1]))"
    script = f'mount -t tmpfs -o size={STORE_MIB}m tmpfs {tmp_path} && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", program]
    result = subprocess.run(
        [*command, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=JOB_DEADLINE,
    )
    assert result.returncode == 0, result.stderr
