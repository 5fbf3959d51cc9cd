"""A reader of evidence reports special files at once."""

from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from agentworld.access.directory import Directory
from agentworld.access.secret import read_secret
from agentworld.client.credential import ClientSettings
from agentworld.client.trajectory import read_trajectory
from agentworld.errors import AgentworldError, InputError, StoreError
from agentworld.ledger import Ledger
from agentworld.records.file import MOST_BYTES
from agentworld.records.report import read_report
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.step import StepReceipt
from agentworld.signing.keys import SIGNER, TRUSTED, current_key, load_signer, load_trusted
from agentworld.storage.causal_lm import context_tokens
from agentworld.storage.model_folder import check_safe
from agentworld.storage.objects import ObjectStore, WriteOnce
from agentworld.storage.pools import PoolWriter, pool_rows, read_pool
from agentworld.storage.simulators import PinnedSimulator
from agentworld.storage.trajectories import read_collected, read_trajectories
from agentworld.storage.weights import read_tensors
from agentworld.train.resume import newest_checkpoint
from make import records
from make.special import SPECIAL, exchange
from waiting import outcome

DIGEST = records.digest("a")
HEX = DIGEST.removeprefix("sha256:")


def read_sample_pool(folder: Path) -> object:
    with PoolWriter(folder / "elsewhere.parquet") as file:
        file.add(pool_rows([records.sample()]))
    pool_file = file.summary().model_copy(update={"file": "sft.parquet"})
    return list(read_pool(folder, records.dataset(sft=pool_file), "sft"))


READERS = {
    "a receipt": ("a.json", lambda folder: StepReceipt.read(folder / "a.json")),
    "a report": ("a.json", lambda folder: read_report(folder / "a.json")),
    "a manifest": ("a.json", lambda folder: SimulatorManifest.read(folder / "a.json")),
    "a pinned one's": (f"{HEX}/manifest.json", lambda folder: PinnedSimulator.read(folder / HEX)),
    "an object": (f"{HEX[:2]}/{HEX}", lambda folder: ObjectStore(str(folder)).get(DIGEST)),
    "a copy": ("a/b", lambda folder: WriteOnce(str(folder)).get("a/b")),
    "a copy that is there": ("a/b", lambda folder: WriteOnce(str(folder)).put("a/b", b"c")),
    "a signer": (SIGNER, load_signer),
    "a key that signs": (SIGNER, current_key),
    "a trusted key": (f"{TRUSTED}/a.pem", load_trusted),
    "a secret": ("a", lambda folder: read_secret(folder / "a")),
    "a log from elsewhere": ("a.jsonl", lambda folder: list(read_trajectories(folder / "a.jsonl"))),
    "a folder of logs": ("a.jsonl", read_collected),
    "an agent's log": ("a.jsonl", lambda folder: list(read_trajectory(folder / "a.jsonl"))),
    "a pool": ("sft.parquet", read_sample_pool),
    "weights": ("a.safetensors", lambda folder: read_tensors(folder / "a.safetensors")),
    "a model's file": ("a.json", check_safe),
    "settings": ("config.json", context_tokens),
    "who may come": ("a.yaml", lambda folder: Directory.load(folder / "a.yaml")),
    "a credential": (
        "a",
        lambda folder: ClientSettings(credential_file=folder / "a").load_credential(),
    ),
}


@pytest.mark.parametrize("kind", [kind for kind in SPECIAL if kind != "a folder"])
@pytest.mark.parametrize(("name", "read"), READERS.values(), ids=READERS)
def test_readers_of_evidence_refuse_special_files_without_blocking(tmp_path, kind, name, read):
    exchange(tmp_path / name, kind)
    error = outcome(lambda: read(tmp_path))
    assert isinstance(error, AgentworldError)
    assert not error.retryable  # otherwise it would end the whole audit


def test_a_checkpoint_with_a_pipe_as_its_manifest_is_ignored(tmp_path):
    exchange(tmp_path / "checkpoint-1" / "manifest.json")
    assert outcome(lambda: newest_checkpoint(tmp_path)) is None


@pytest.mark.parametrize("suffix", ["", "-journal", "-wal", "-shm"])
def test_a_pipe_in_place_of_a_database_file_is_refused_without_blocking(tmp_path, suffix):
    exchange(path := tmp_path / f"ledger.db{suffix}")
    error = outcome(lambda: Ledger(f"sqlite:///{tmp_path}/ledger.db"))
    assert isinstance(error, StoreError)
    assert f"of {path}, it is a pipe and not a regular file" in str(error)
    assert not error.retryable


@pytest.mark.parametrize("url", ["{folder}", "memory://objects"])
def test_an_object_larger_than_the_read_limit_is_not_stored(tmp_path, url):
    large, url = bytes(MOST_BYTES + 1), url.format(folder=tmp_path)
    for put in (ObjectStore(url).put, lambda data: WriteOnce(url).put("large", data)):
        with pytest.raises(InputError, match=f"has {MOST_BYTES + 1} bytes; send at most"):
            put(large)


class Endless(MemoryFileSystem):
    """Reports objects that are larger than any memory."""

    protocol = "endless"

    def info(self, path, **_):
        return {"name": path, "type": "file", "size": 1 << 50}


def test_an_object_in_a_bucket_that_is_too_large_is_not_fetched():
    fsspec.register_implementation("endless", Endless, clobber=True)
    with pytest.raises(StoreError, match="has more than .* bytes") as error:
        ObjectStore("endless://bucket").get(DIGEST)
    assert not error.value.retryable
