"""Steps whose store is in a bucket; each scratch folder represents another pod."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

import make.training
from agentworld.engine.process import free_port
from agentworld.errors import InputError, StoreError
from agentworld.operations.registry import open_registry
from agentworld.records.base import Digest, Record, digest_bytes
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.progress import OnProgress
from agentworld.records.step import StepReceipt
from agentworld.runner.folders import checkpoint_of
from agentworld.runner.progress import read_progress
from agentworld.runner.remote import fetch, keep, local_store, on_store
from agentworld.runner.run_name import forget_run_name, run_name
from agentworld.runner.step import run_step
from agentworld.signing.keys import (
    KEY_VARIABLES,
    STEP_KEYS,
    TRUSTED,
    ensure_signer,
    load_trusted,
    new_signer,
)
from agentworld.storage.folder import open_folder
from agentworld.storage.receipts import read_receipt
from agentworld.storage.stores import Stores
from make.lease_clock import LeaseClock
from waiting import DEADLINE, wait_for

pytestmark = pytest.mark.waits  # a server of buckets

CPT = """
import sys
from agentworld.steps.run import run_by_name
print(run_by_name("cpt", *sys.argv[1:]))
"""


class Part(Record):
    words: str = "a recipe's part"


class Pods(NamedTuple):
    """Starts steps in pods with separate disks."""

    patch: pytest.MonkeyPatch
    folder: Path
    store: str

    def begin(self, name: str) -> None:
        """Switches to this pod."""
        self.patch.setenv("AGENTWORLD_SCRATCH", str(self.folder / name))


@pytest.fixture
def pods(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pods:
    monkeypatch.setenv("AGENTWORLD_LEASE_SECONDS", "1")
    monkeypatch.setenv("AGENTWORLD_KEEP_SECONDS", "0.2")
    pods = Pods(monkeypatch, tmp_path, f"{bucket}/{tmp_path.name}")
    pods.begin("first")
    return pods


def make_episodes(out: Path, _: OnProgress) -> Digest:
    (out / "log").mkdir(exist_ok=True)
    (out / "log/1").write_text("an episode")
    return digest_bytes(b"episodes")


@on_store
def collect(store: str, work=make_episodes) -> str:
    return str(run_step(Path(store), "collect", [Part()], {}, work))


@on_store
def prepare(store: str, collected: str) -> str:
    def work(out: Path, _: OnProgress) -> Digest:
        text = (Path(collected) / "log/1").read_text()
        (out / "pool").write_text(text.upper())
        return digest_bytes(text.encode())

    inputs = {"collected": read_receipt(Path(collected)).output}
    reads = [Path(collected)]
    return str(run_step(Path(store), "prepare", [Part()], inputs, work, reads=reads))


def test_a_step_returns_an_address_that_the_next_pod_can_read(pods):
    collected = collect(pods.store)
    assert collected.startswith(f"{pods.store}/steps/collect/")
    pods.begin("second")
    prepared = prepare(pods.store, collected)
    assert open_folder(prepared).read("pool") == b"AN EPISODE"


def test_a_finished_step_is_reused_by_downloading_only_its_receipt(pods):
    prepared = prepare(pods.store, collect(pods.store))
    pods.begin("second")
    second_result = prepare(pods.store, collect(pods.store, lambda *_: pytest.fail("done again")))
    assert second_result == prepared
    downloads = [path.name for path in local_store(pods.store).rglob("*") if path.is_file()]
    assert set(downloads) <= {".origin", ".lock", "receipt.json", "collect.json", "prepare.json"}
    assert read_progress(local_store(pods.store), "prepare").state == "reused"


def test_a_store_in_a_local_folder_is_used_directly(tmp_path):
    folder = collect(str(tmp_path))
    assert Path(folder).parent == tmp_path / "steps/collect"
    assert prepare(str(tmp_path), folder).startswith(str(tmp_path))


def test_the_files_of_a_failed_step_are_available_to_its_retry(pods):
    def fail(out: Path, _: OnProgress) -> Digest:
        (out / "half").write_text("done")
        raise InputError("no")

    with pytest.raises(InputError):
        collect(pods.store, fail)
    pods.begin("second")
    assert read_progress(local_store(pods.store), "collect").sentence == "no"
    names = []

    def resume(out: Path, tick: OnProgress) -> Digest:
        names.extend(path.name for path in out.iterdir())
        return make_episodes(out, tick)

    collect(pods.store, resume)
    assert names == ["half"]


@pytest.mark.parametrize("missing", ["the receipt", "the folder"])
def test_a_step_whose_receipt_or_folder_was_deleted_runs_again(pods, missing):
    folder = open_folder(collect(pods.store))
    for name in ["receipt.json"] if missing == "the receipt" else folder.names(""):
        folder.remove(name)
    collect(pods.store)
    assert folder.names("") == ["log/1", "receipt.json"]


def test_a_pod_that_waited_for_a_step_reuses_its_result(pods):
    started, results = threading.Event(), []

    def slow_work(out: Path, tick: OnProgress) -> Digest:
        started.set()
        time.sleep(1)
        return make_episodes(out, tick)

    def run_second() -> None:
        started.wait()
        pods.begin("second")
        results.append(collect(pods.store, lambda *_: pytest.fail("done again")))

    thread = threading.Thread(target=run_second)
    thread.start()
    folder = collect(pods.store, slow_work)
    thread.join()
    assert results == [folder]


def test_a_checkpoint_record_is_not_uploaded_before_its_step_finishes(pods):
    listings: list[list[str]] = []

    def train(out: Path, _: OnProgress) -> Digest:
        (out / "model").mkdir()
        (out / "model/weights").write_text("half")
        (out / "notes").write_text("kept on the way")
        (out / "checkpoint.json").write_text("{}")
        bucket = open_folder(f"{pods.store}/steps/collect/{out.name}")
        wait_for(lambda: bucket.has("notes"))
        listings.append(bucket.names(""))
        raise InputError("no")

    with pytest.raises(InputError):
        collect(pods.store, train)
    assert listings == [["notes"]]
    assert not [name for name in open_folder(pods.store).names("") if "checkpoint" in name]


def test_a_retry_continues_with_the_files_of_the_last_pod(pods):
    def note_writer(text: str):
        def work(out: Path, _: OnProgress) -> Digest:
            old_notes.append((out / "notes").read_text() if (out / "notes").exists() else "")
            (out / "notes").write_text(text)
            raise InputError("no")

        return work

    old_notes: list[str] = []
    for pod, text in (("first", "one"), ("second", "two"), ("first", "three")):
        pods.begin(pod)
        with pytest.raises(InputError):
            collect(pods.store, note_writer(text))
    assert old_notes == ["", "one", "two"]


def test_a_second_pod_cannot_work_on_the_same_step(pods):
    def start_other_pod(out: Path, tick: OnProgress) -> Digest:
        pods.begin("second")
        url = f"{pods.store}/steps/collect/{out.name}.lease"
        with pods.patch.context() as patch:
            patch.setattr("agentworld.storage.lease.time", LeaseClock(url))
            with pytest.raises(StoreError, match="another process works on collect"):
                collect(pods.store)
        return make_episodes(out, tick)

    collect(pods.store, start_other_pod)


def test_a_step_that_lost_its_lease_writes_no_receipt(pods):
    for name in ("LEASE", "KEEP"):  # so that no renewal under way overwrites the other's lease
        pods.patch.setenv(f"AGENTWORLD_{name}_SECONDS", "60")

    def lose_lease(out: Path, tick: OnProgress) -> Digest:
        open_folder(f"{pods.store}/steps/collect").write(f"{out.name}.lease", b"another")
        return make_episodes(out, tick)

    with pytest.raises(StoreError, match="another process works on collect"):
        collect(pods.store, lose_lease)
    assert not [name for name in open_folder(pods.store).names("") if "receipt" in name]


def test_pods_share_a_run_name_until_it_is_forgotten(pods):
    home = local_store(pods.store)
    name = run_name(home / "steps/open_run/a")
    pods.begin("second")
    folder = local_store(pods.store) / "steps/open_run/a"
    assert run_name(folder) == name
    forget_run_name(folder)
    pods.begin("third")
    assert run_name(local_store(pods.store) / "steps/open_run/a") != name


def test_a_store_in_a_bucket_requires_settings_for_ledger_registry_and_keys(pods, monkeypatch):
    home = local_store(pods.store)
    with pytest.raises(InputError, match="cannot hold a ledger; set AGENTWORLD_LEDGER_URL"):
        Stores.of(home)
    with pytest.raises(InputError, match="cannot hold a registry; set MLFLOW_TRACKING_URI"):
        open_registry(home)
    monkeypatch.setenv("AGENTWORLD_LEDGER_URL", "postgresql://ledger")
    stores = Stores.of(home)
    assert stores.objects_url == f"{pods.store}/objects"
    assert stores.mirror_url == f"{pods.store}/mirror"
    for name, variable in KEY_VARIABLES.items():
        with pytest.raises(
            InputError, match=f"cannot hold a private key; set {variable} to a signer's PEM"
        ):
            ensure_signer(stores.keys / name)


def test_a_private_key_comes_from_a_variable_and_only_its_public_key_is_uploaded(pods, monkeypatch):
    pem = new_signer().decode()
    monkeypatch.setenv("AGENTWORLD_STEP_KEY", pem)
    monkeypatch.setenv("AGENTWORLD_LEDGER_URL", "postgresql://ledger")
    keys = Stores.of(local_store(pods.store)).keys / STEP_KEYS
    signer = ensure_signer(keys)
    assert (keys / "signer.pem").stat().st_mode & 0o777 == 0o600
    keep(keys / TRUSTED)
    bucket = open_folder(pods.store)
    assert bucket.names("keys") == [f"keys/steps/trusted/{signer.public_key.keyid}.pem"]

    pods.begin("after a rotation")
    monkeypatch.setenv("AGENTWORLD_STEP_KEY", new_signer().decode())
    keys = Stores.of(local_store(pods.store)).keys / STEP_KEYS
    rotated_signer = ensure_signer(keys)
    assert set(load_trusted(keys)) == {signer.public_key.keyid, rotated_signer.public_key.keyid}
    monkeypatch.setenv("AGENTWORLD_STEP_KEY", "hidden words")
    with pytest.raises(InputError, match="AGENTWORLD_STEP_KEY is not a private key") as error:
        local_store(pods.store)
    assert "hidden" not in str(error.value)


@pytest.fixture(scope="module")
def local_run(tmp_path_factory: pytest.TempPathFactory) -> make.training.Training:
    """A store on a disk with a training that was not interrupted."""
    training = make.training.training(
        tmp_path_factory.mktemp("here") / "store", cpt={"epochs": 60, "checkpoint_every": 10}
    )
    wait_for_folder(start_training(training))
    return training


@pytest.fixture
def bucket_run(pods: Pods, local_run: make.training.Training) -> make.training.Training:
    """The same store without its training, in a bucket."""
    home = local_store(pods.store)
    shutil.copytree(local_run.store, home, dirs_exist_ok=True)
    shutil.rmtree(home / "steps/cpt")
    keep(home)
    data = f"{pods.store}/steps/prepare/{Path(local_run.data).name}"
    return make.training.Training(f"{pods.store}/tiny.yaml", pods.store, data)


def wait_for_checkpoint(store: str, process: subprocess.Popen[str]) -> None:
    """Waits until the bucket has a complete checkpoint."""
    bucket = open_folder(f"{store}/steps/cpt")
    while not [name for name in bucket.names("") if name.endswith("/manifest.json")]:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def receipt_of(pods: Pods, folder: str) -> StepReceipt:
    return read_receipt(local_store(pods.store) / folder.removeprefix(f"{pods.store}/"))


def test_a_training_continues_in_another_pod_after_its_pod_was_killed(pods, local_run, bucket_run):
    pods.begin("second")
    first = start_process("-m", "make.paused_training", *bucket_run)
    wait_for_checkpoint(pods.store, first)
    os.killpg(first.pid, signal.SIGKILL)
    assert "receipt.json" not in "".join(open_folder(pods.store).names("steps/cpt"))

    pods.begin("third")
    start, home, second = time.time(), local_store(pods.store), start_training(bucket_run)
    while (state := read_progress(home, "cpt")) is None or state.started < start or not state.total:
        assert second.poll() is None, second.communicate()
        time.sleep(0.01)
    # In thousandths. The first checkpoint is after the tenth step of some 2,000, and a training
    # that began again would report its first step.
    assert state.done > 2
    folder = wait_for_folder(second)
    names = open_folder(folder).names("")
    assert "model/model.safetensors" in names
    assert not [name for name in names if "checkpoints" in name]
    (receipt_path,) = Path(local_run.store).glob("steps/cpt/*/receipt.json")
    expected, receipt = read_receipt(receipt_path.parent), receipt_of(pods, folder)
    assert (receipt.key, receipt.output) == (expected.key, expected.output)


@pytest.mark.long
def test_a_training_on_two_machines_resumes_from_its_checkpoint_after_a_kill(
    pods, local_run, bucket_run
):
    first = start_pods(pods, "before", bucket_run)
    wait_for_checkpoint(pods.store, first[0])
    for process in first:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    second = start_pods(pods, "after", bucket_run)
    logs = [process.communicate(timeout=DEADLINE)[1] for process in second]
    assert [process.returncode for process in second] == [0, 0], logs
    assert re.search(r"Resuming training from checkpoint .* global step [1-9]", logs[0])
    (folder,) = (
        path for path in (local_store(pods.store) / "steps/cpt").iterdir() if path.is_dir()
    )
    (path,) = Path(local_run.store).glob("steps/cpt/*/checkpoint.json")
    expected = Checkpoint.read(path)
    checkpoint = checkpoint_of(fetch(folder))
    assert checkpoint.metrics == pytest.approx(expected.metrics, abs=1e-2)  # rounding errors add up
    assert (folder / "model/model.safetensors").is_file()


def start_pods(pods: Pods, name: str, job: make.training.Training) -> list[subprocess.Popen[str]]:
    """Starts a pod on each of two machines, with separate disks and one process each."""
    port = free_port()
    flags = ("--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={port}")
    processes = []
    for rank in range(2):
        pods.begin(f"{name}-{rank}")
        member = ("-m", "agentworld.steps.member", "cpt", *job)
        launcher = ("-m", "torch.distributed.run", *flags, f"--node-rank={rank}")
        processes.append(start_process(*launcher, *member))
    return processes


def start_training(job: make.training.Training) -> subprocess.Popen[str]:
    """Starts a pod that trains."""
    return start_process("-c", CPT, *job)


def start_process(*arguments: str) -> subprocess.Popen[str]:
    """Starts a process of a pod."""
    variables = {"OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "info"}
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_folder(process: subprocess.Popen[str]) -> str:
    """The folder that a process prints at its end."""
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    return out.strip().rpartition("\n")[2]
