"""The world model's pipeline with real steps, while its processes are killed, its registry fails
and its disk fills up: its result equals an undisturbed one.
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
from machines.mlflow_server import MlflowServer, counted, door, serving
from make.small_job import CHECKPOINT_EVERY, MOST_SECONDS, REAL, Job, made, receipts
from waiting import DEADLINE

pytestmark = pytest.mark.compute  # as root, for what it mounts

STORE_MIB = 8
LEFT_BYTES = 200_000  # of a checkpoint's 300 kB
ONE = dict.fromkeys(("versions", "runs", "models", "values"), 1)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a job to which nothing happened; do not write into it."""
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


def registered(url: str, artifact: Digest, copy: Path) -> tuple[WorldModel, dict[str, str], Digest]:
    """The one version of an artifact: its origin, its tags, and the files that it stands for."""
    from mlflow import MlflowClient

    from agentworld.lineage.mlflow import MlflowRegistry

    registry = MlflowRegistry(url)
    (ref,) = registry.world_models_of(artifact)
    registry.fetch(ref, copy)
    version = MlflowClient(url, url).get_model_version(ref.name, str(ref.version))
    return registry.world_model(ref), version.tags, ArtifactManifest.of(copy).digest


def ended_as(undisturbed: Path, store: Path, url: str) -> None:
    """A job with its registry at an address has the same results as one with its own."""
    expected, found = made(undisturbed), made(store)
    (_, artifact), (_, also) = expected.pop("register"), found.pop("register")
    assert also == artifact
    assert found == expected  # the registry counts for no other step
    own = f"sqlite:///{undisturbed}/mlflow.db"
    same = registered(own, artifact, store / "expected")
    assert registered(url, artifact, store / "found") == same
    assert counted(url, artifact) == ONE


@pytest.mark.long
def test_an_interrupted_and_killed_job_has_the_results_of_an_undisturbed_job(
    tmp_path: Path,
    undisturbed: Path,
    registry: str,
    server: MlflowServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = Job(tmp_path / "store")
    told = job.struck("cpt", signal.SIGTERM, lambda: bool(job.checkpoints("cpt")))
    newest, sealed = max(job.checkpoints("cpt").items())
    assert newest % CHECKPOINT_EVERY  # no time for one but for the signal
    assert (told.state, told.step, told.kind) == ("failed", "cpt", "Preempted")
    assert told.sentence == f"preempted; run it again: it resumes from step {newest}"
    goes_on = partial(job.goes_on, "cpt", newest, sealed)
    job.struck("rl", signal.SIGKILL, goes_on, lambda: bool(job.checkpoints("rl")))
    with door(server.port) as before:
        is_made, is_over = threading.Event(), threading.Event()

        def hold_back(number: int) -> bool:
            """The response to the creation of a version is lost."""
            if "model-versions/create" not in before.asked[number]:
                return False
            is_made.set()
            return is_over.wait(DEADLINE)

        monkeypatch.setenv("MLFLOW_TRACKING_URI", before.url)
        before.loses = hold_back
        job.struck("register", signal.SIGKILL, is_made.is_set)
        is_over.set()
        before.loses = lambda _number: False
        job.run()

    ended_as(undisturbed, job.store, registry)
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
    job.has_done(undisturbed, but={"gate", "register"})
    with server.away():
        with monkeypatch.context() as impatient:
            impatient.setenv("AGENTWORLD_MLFLOW_PATIENCE_SECONDS", "2")
            told = job.failed(job.start())
        done = receipts(job.store)
        running = job.start()
        waits = f"the registry {registry} does not respond; waiting 120 s"
        job.until(running, lambda: waits in job.log())
    assert (told.state, told.step, told.kind) == ("failed", "register", "StoreError")
    away = rf"the registry {registry} did not respond for \d s: [^;]*; check that it runs"
    assert re.fullmatch(away, told.sentence)
    assert "gate" in done
    server.wait()
    assert running.wait(MOST_SECONDS) == 0, job.log()
    assert done.items() <= receipts(job.store).items()
    ended_as(undisturbed, job.store, registry)


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
    done = subprocess.run(
        [*command, str(store), str(undisturbed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
        timeout=3 * MOST_SECONDS,
    )
    assert done.returncode == 0, done.stderr


def a_disk_that_fills_up(store: Path, undisturbed: Path) -> None:
    """In a separate process, which alone sees this disk."""
    job = Job(store)
    job.has_done(undisturbed, but={"cpt"})
    done = receipts(store)
    (store / LOG).symlink_to(store.with_name(LOG))  # on another disk
    running = job.start()
    job.until(running, lambda: bool(job.checkpoints("cpt")))
    free = os.statvfs(store).f_bavail * os.statvfs(store).f_frsize
    (store / "filler").write_bytes(bytes(free - LEFT_BYTES))
    assert running.wait(MOST_SECONDS) != 0
    full = f"the disk that holds {store} is full; free space and run it again, what is done is kept"
    # By the training, and by the step that was to write down how the run ended.
    assert job.log().count(f"agentworld.errors.StoreError: {full}\n") == 2, job.log()
    assert receipts(store) == done
    newest, sealed = max(job.checkpoints("cpt").items())

    subprocess.run(["mount", "-o", f"remount,size={2 * STORE_MIB}m", str(store)], check=True)
    running = job.start()
    job.until(running, lambda: job.goes_on("cpt", newest, sealed))
    assert running.wait(MOST_SECONDS) == 0, job.log()
    assert done.items() <= receipts(store).items()
    assert made(store) == made(undisturbed)
