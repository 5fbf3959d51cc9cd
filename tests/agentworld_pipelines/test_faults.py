"""The world model's pipeline with real steps, while its processes are killed, its registry fails
and its disk fills up: it has the results of an undisturbed run.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from agentworld.engine.process import LOOPBACK
from agentworld.lineage.base import WorldModel
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest
from agentworld_pipelines.local import LOG
from machines.mlflow_server import MlflowServer, counted, proxying, serving
from make.small_job import CHECKPOINT_EVERY, REAL, Job, made, receipts
from waiting import DEADLINE, JOB_DEADLINE

pytestmark = pytest.mark.compute  # as root, because it mounts

STORE_MIB = 8
FREE_BYTES = 200_000  # of a checkpoint's 300 kB
ONE_EACH = dict.fromkeys(("versions", "runs", "models", "values"), 1)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of an undisturbed job; do not write into it."""
    job = Job(tmp_path_factory.mktemp("undisturbed") / "store")
    job.run()
    assert set(REAL) <= set(made(job.store))
    return job.store


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    with serving(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


@pytest.fixture
def registry(server: MlflowServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the server, with a separate workspace for the test."""
    from mlflow import MlflowClient

    url = f"http://{LOOPBACK}:{server.port}"
    workspace = uuid.uuid4().hex
    MlflowClient(url, url).create_workspace(workspace)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
    monkeypatch.setenv("MLFLOW_WORKSPACE", workspace)
    return url


def read_version(
    url: str, artifact: Digest, folder: Path
) -> tuple[WorldModel, dict[str, str], Digest]:
    """The only version of an artifact: its origin, its tags, and the digest of its files."""
    from mlflow import MlflowClient

    from agentworld.lineage.mlflow import MlflowRegistry

    registry = MlflowRegistry(url)
    (ref,) = registry.world_models_of(artifact)
    registry.fetch(ref, folder)
    version = MlflowClient(url, url).get_model_version(ref.name, str(ref.version))
    return registry.world_model(ref), version.tags, ArtifactManifest.of(folder).digest


def check_results(undisturbed: Path, store: Path, url: str) -> None:
    """Checks that a job with a registry at an address has the results of a job with its own."""
    expected, results = made(undisturbed), made(store)
    (_, artifact), (_, other_artifact) = expected.pop("register"), results.pop("register")
    assert other_artifact == artifact
    assert results == expected  # no other step depends on the registry
    own_url = f"sqlite:///{undisturbed}/mlflow.db"
    version = read_version(own_url, artifact, store / "expected")
    assert read_version(url, artifact, store / "found") == version
    assert counted(url, artifact) == ONE_EACH


@pytest.mark.long
def test_an_interrupted_and_killed_job_has_the_results_of_an_undisturbed_job(
    tmp_path: Path,
    undisturbed: Path,
    registry: str,
    server: MlflowServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(tmp_path / "store")
    conclusion = job.struck("cpt", signal.SIGTERM, lambda: bool(job.checkpoints("cpt")))
    newest, time = max(job.checkpoints("cpt").items())
    assert newest % CHECKPOINT_EVERY  # only the signal causes it
    assert (conclusion.state, conclusion.step, conclusion.kind) == ("failed", "cpt", "Preempted")
    assert conclusion.sentence == f"preempted; run it again: it resumes from step {newest}"
    is_resumed = partial(job.goes_on, "cpt", newest, time)
    job.struck("rl", signal.SIGKILL, is_resumed, lambda: bool(job.checkpoints("rl")))
    with proxying(server.port) as proxy:
        creation, end = threading.Event(), threading.Event()

        def hold_back(number: int) -> bool:
            """Loses the response to the creation of a version."""
            if "model-versions/create" not in proxy.requests[number]:
                return False
            creation.set()
            return end.wait(DEADLINE)

        monkeypatch.setenv("MLFLOW_TRACKING_URI", proxy.url)
        proxy.loses = hold_back
        job.struck("register", signal.SIGKILL, creation.is_set)
        end.set()
        proxy.loses = lambda _number: False
        job.run()

    check_results(undisturbed, job.store, registry)
    assert len(list(job.store.glob("steps/*/*/model/model.safetensors"))) == 3
    assert not list(job.store.glob("steps/*/*/checkpoints"))


def test_a_job_fails_without_its_registry_and_continues_if_the_registry_returns(
    tmp_path: Path,
    undisturbed: Path,
    registry: str,
    server: MlflowServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(tmp_path / "store")
    job.copy_steps(undisturbed, but={"gate", "register"})
    with server.away():
        with monkeypatch.context() as patch:
            patch.setenv("AGENTWORLD_MLFLOW_PATIENCE_SECONDS", "2")
            conclusion = job.failed(job.start())
        first_receipts = receipts(job.store)
        process = job.start()
        message = f"the registry {registry} does not respond; waiting 120 s"
        job.until(process, lambda: message in job.log())
    assert (conclusion.state, conclusion.step, conclusion.kind) == (
        "failed",
        "register",
        "StoreError",
    )
    pattern = rf"the registry {registry} did not respond for \d s: [^;]*; check that it runs"
    assert re.fullmatch(pattern, conclusion.sentence)
    assert "gate" in first_receipts
    server.wait()
    assert process.wait(JOB_DEADLINE) == 0, job.log()
    assert first_receipts.items() <= receipts(job.store).items()
    check_results(undisturbed, job.store, registry)


@pytest.mark.long
def test_a_full_disk_ends_a_job_and_the_job_resumes_when_space_is_free(
    tmp_path: Path, undisturbed: Path
) -> None:
    program = "import sys; from pathlib import Path; import test_faults as here; "
    program += "here.a_disk_that_fills_up(*map(Path, sys.argv[1:]))"
    store = tmp_path / "store"
    store.mkdir()
    script = f'mount -t tmpfs -o size={STORE_MIB}m tmpfs {store} && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", program]
    result = subprocess.run(
        [*command, str(store), str(undisturbed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=JOB_DEADLINE,
    )
    assert result.returncode == 0, result.stderr


def a_disk_that_fills_up(store: Path, undisturbed: Path) -> None:
    """Runs in a separate process, which alone sees this disk."""
    job = Job(store)
    job.copy_steps(undisturbed, but={"cpt"})
    first_receipts = receipts(store)
    (store / LOG).symlink_to(store.with_name(LOG))  # on another disk
    process = job.start()
    job.until(process, lambda: bool(job.checkpoints("cpt")))
    free = os.statvfs(store).f_bavail * os.statvfs(store).f_frsize
    (store / "filler").write_bytes(bytes(free - FREE_BYTES))
    assert process.wait(JOB_DEADLINE) != 0
    text = f"the disk that holds {store} is full; free space and run it again, what is done is kept"
    # By the training, and by the step that writes the conclusion of the run.
    assert job.log().count(f"agentworld.errors.StoreError: {text}\n") == 2, job.log()
    assert receipts(store) == first_receipts
    newest, time = max(job.checkpoints("cpt").items())

    subprocess.run(["mount", "-o", f"remount,size={2 * STORE_MIB}m", str(store)], check=True)
    process = job.start()
    job.until(process, lambda: job.goes_on("cpt", newest, time))
    assert process.wait(JOB_DEADLINE) == 0, job.log()
    assert first_receipts.items() <= receipts(store).items()
    assert made(store) == made(undisturbed)
