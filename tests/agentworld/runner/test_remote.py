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
    again = prepare(pods.store, collect(pods.store, lambda *_: pytest.fail("done again")))
    assert again == prepared
    brought = [path.name for path in local_store(pods.store).rglob("*") if path.is_file()]
    assert set(brought) <= {".origin", ".lock", "receipt.json", "collect.json", "prepare.json"}
    assert read_progress(local_store(pods.store), "prepare").state == "reused"


def test_a_store_in_a_local_folder_is_used_directly(tmp_path):
    folder = collect(str(tmp_path))
    assert Path(folder).parent == tmp_path / "steps/collect"
    assert prepare(str(tmp_path), folder).startswith(str(tmp_path))


def test_the_files_of_a_failed_step_are_available_to_its_retry(pods):
    def fails(out: Path, _: OnProgress) -> Digest:
        (out / "half").write_text("done")
        raise InputError("no")

    with pytest.raises(InputError):
        collect(pods.store, fails)
    pods.begin("second")
    assert read_progress(local_store(pods.store), "collect").sentence == "no"
    found = []

    def goes_on(out: Path, tick: OnProgress) -> Digest:
        found.extend(path.name for path in out.iterdir())
        return make_episodes(out, tick)

    collect(pods.store, goes_on)
    assert found == ["half"]


@pytest.mark.parametrize("gone", ["the receipt", "the folder"])
def test_a_step_whose_receipt_or_folder_was_deleted_runs_again(pods, gone):
    folder = open_folder(collect(pods.store))
    for name in ["receipt.json"] if gone == "the receipt" else folder.names(""):
        folder.remove(name)
    collect(pods.store)
    assert folder.names("") == ["log/1", "receipt.json"]


def test_a_pod_that_waited_for_a_step_reuses_its_result(pods):
    begun, waited = threading.Event(), []

    def first(out: Path, tick: OnProgress) -> Digest:
        begun.set()
        time.sleep(1)
        return make_episodes(out, tick)

    def second() -> None:
        begun.wait()
        pods.begin("second")
        waited.append(collect(pods.store, lambda *_: pytest.fail("done again")))

    waiting = threading.Thread(target=second)
    waiting.start()
    made = collect(pods.store, first)
    waiting.join()
    assert waited == [made]


def test_a_checkpoint_record_is_not_uploaded_before_its_step_finishes(pods):
    seen: list[list[str]] = []

    def trains(out: Path, _: OnProgress) -> Digest:
        (out / "model").mkdir()
        (out / "model/weights").write_text("half")
        (out / "notes").write_text("kept on the way")
        (out / "checkpoint.json").write_text("{}")
        bucket = open_folder(f"{pods.store}/steps/collect/{out.name}")
        wait_for(lambda: bucket.has("notes"))
        seen.append(bucket.names(""))
        raise InputError("no")

    with pytest.raises(InputError):
        collect(pods.store, trains)
    assert seen == [["notes"]]
    assert not [name for name in open_folder(pods.store).names("") if "checkpoint" in name]


def test_a_retry_continues_with_the_files_of_the_last_pod(pods):
    def notes(words: str):
        def work(out: Path, _: OnProgress) -> Digest:
            found.append((out / "notes").read_text() if (out / "notes").exists() else "")
            (out / "notes").write_text(words)
            raise InputError("no")

        return work

    found: list[str] = []
    for pod, words in (("first", "one"), ("second", "two"), ("first", "three")):
        pods.begin(pod)
        with pytest.raises(InputError):
            collect(pods.store, notes(words))
    assert found == ["", "one", "two"]


def test_a_second_pod_cannot_work_on_the_same_step(pods):
    def other_pod(out: Path, tick: OnProgress) -> Digest:
        pods.begin("second")
        with pytest.raises(StoreError, match="another process works on collect"):
            collect(pods.store)
        return make_episodes(out, tick)

    collect(pods.store, other_pod)


def test_a_step_that_lost_its_lease_writes_no_receipt(pods):
    for name in ("LEASE", "KEEP"):  # so that no renewal under way overwrites the other's lease
        pods.patch.setenv(f"AGENTWORLD_{name}_SECONDS", "60")

    def sleeps(out: Path, tick: OnProgress) -> Digest:
        open_folder(f"{pods.store}/steps/collect").write(f"{out.name}.lease", b"another")
        return make_episodes(out, tick)

    with pytest.raises(StoreError, match="another process works on collect"):
        collect(pods.store, sleeps)
    assert not [name for name in open_folder(pods.store).names("") if "receipt" in name]


def test_pods_share_a_run_name_until_it_is_forgotten(pods):
    home = local_store(pods.store)
    first = run_name(home / "steps/open_run/a")
    pods.begin("second")
    folder = local_store(pods.store) / "steps/open_run/a"
    assert run_name(folder) == first
    forget_run_name(folder)
    pods.begin("third")
    assert run_name(local_store(pods.store) / "steps/open_run/a") != first


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
    rotated = ensure_signer(keys)
    assert set(load_trusted(keys)) == {signer.public_key.keyid, rotated.public_key.keyid}
    monkeypatch.setenv("AGENTWORLD_STEP_KEY", "hidden words")
    with pytest.raises(InputError, match="AGENTWORLD_STEP_KEY is not a private key") as told:
        local_store(pods.store)
    assert "hidden" not in str(told.value)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> make.training.Training:
    """A store on a disk, from an undisturbed run."""
    made = make.training.training(
        tmp_path_factory.mktemp("here") / "store", cpt={"epochs": 60, "checkpoint_every": 10}
    )
    finished(training(made))
    return made


@pytest.fixture
def in_bucket(pods: Pods, trained: make.training.Training) -> make.training.Training:
    """The same without trainings, in a bucket."""
    home = local_store(pods.store)
    shutil.copytree(trained.store, home, dirs_exist_ok=True)
    shutil.rmtree(home / "steps/cpt")
    keep(home)
    data = f"{pods.store}/steps/prepare/{Path(trained.data).name}"
    return make.training.Training(f"{pods.store}/tiny.yaml", pods.store, data)


def wait_for_checkpoint(store: str, process: subprocess.Popen[str]) -> None:
    """Until the bucket has a whole one."""
    bucket = open_folder(f"{store}/steps/cpt")
    while not [name for name in bucket.names("") if name.endswith("/manifest.json")]:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def receipt_of(pods: Pods, folder: str) -> StepReceipt:
    return read_receipt(local_store(pods.store) / folder.removeprefix(f"{pods.store}/"))


def test_a_training_continues_in_another_pod_after_its_pod_was_killed(pods, trained, in_bucket):
    pods.begin("second")
    killed = process("-m", "make.paused_training", *in_bucket)
    wait_for_checkpoint(pods.store, killed)
    os.killpg(killed.pid, signal.SIGKILL)
    assert "receipt.json" not in "".join(open_folder(pods.store).names("steps/cpt"))

    pods.begin("third")
    began, copy, resumed = time.time(), local_store(pods.store), training(in_bucket)
    while (told := read_progress(copy, "cpt")) is None or told.started < began or not told.total:
        assert resumed.poll() is None, resumed.communicate()
        time.sleep(0.01)
    # In thousandths. The first checkpoint is after the tenth step of some 2,000, and a training
    # that began anew would tell of its first step.
    assert told.done > 2
    made = finished(resumed)
    names = open_folder(made).names("")
    assert "model/model.safetensors" in names
    assert not [name for name in names if "checkpoints" in name]
    (folder,) = Path(trained.store).glob("steps/cpt/*/receipt.json")
    expected, receipt = read_receipt(folder.parent), receipt_of(pods, made)
    assert (receipt.key, receipt.output) == (expected.key, expected.output)


@pytest.mark.long
def test_a_training_on_two_machines_resumes_from_its_checkpoint_after_a_kill(
    pods, trained, in_bucket
):
    killed = machines(pods, "before", in_bucket)
    wait_for_checkpoint(pods.store, killed[0])
    for each in killed:
        os.killpg(each.pid, signal.SIGKILL)
        each.communicate()
    resumed = machines(pods, "after", in_bucket)
    said = [each.communicate(timeout=DEADLINE)[1] for each in resumed]
    assert [each.returncode for each in resumed] == [0, 0], said
    assert re.search(r"Resuming training from checkpoint .* global step [1-9]", said[0])
    (folder,) = (
        path for path in (local_store(pods.store) / "steps/cpt").iterdir() if path.is_dir()
    )
    (undisturbed,) = Path(trained.store).glob("steps/cpt/*/checkpoint.json")
    whole = Checkpoint.read(undisturbed)
    made = checkpoint_of(fetch(folder))
    assert made.metrics == pytest.approx(whole.metrics, abs=1e-3)  # what rounding adds up to
    assert (folder / "model/model.safetensors").is_file()


def machines(pods: Pods, name: str, told: make.training.Training) -> list[subprocess.Popen[str]]:
    """Two machines, with separate disks and one process each."""
    port = free_port()
    words = ("--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={port}")
    started = []
    for rank in range(2):
        pods.begin(f"{name}-{rank}")
        member = ("-m", "agentworld.steps.member", "cpt", *told)
        launcher = ("-m", "torch.distributed.run", *words, f"--node-rank={rank}")
        started.append(process(*launcher, *member))
    return started


def training(told: make.training.Training) -> subprocess.Popen[str]:
    """A pod that trains."""
    return process("-c", CPT, *told)


def process(*words: str) -> subprocess.Popen[str]:
    """A pod's."""
    known = {"OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "info"}
    return subprocess.Popen(
        [sys.executable, *words],
        env={**os.environ, **known, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished(process: subprocess.Popen[str]) -> str:
    """The folder that it prints."""
    out, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    return out.strip().rpartition("\n")[2]
