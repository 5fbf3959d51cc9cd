"""Base models by each kind of address: fetched once, verified, and checked for changes."""

import logging
import re
import shutil
from pathlib import Path

import fsspec
import pytest

from agentworld.errors import InputError, NotFound, StoreError
from agentworld.lineage.base import WorldModel
from agentworld.operations.base_model import find_base
from agentworld.operations.registry import open_registry
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.storage.working_copy import open_copy
from make import records

COMMIT = "0123456789" * 4


@pytest.fixture
def model(tmp_path) -> Path:
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "deep/tokenizer.json").write_text('{"words": []}')
    (folder / "model.safetensors").write_bytes(b"weights" * 3_000_000)  # of several pieces
    return folder


@pytest.fixture
def store(tmp_path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def digest(model) -> str:
    return ArtifactManifest.of(model).digest


@pytest.fixture
def address(tmp_path, model) -> str:
    """The address of the model in fsspec's memory."""
    url = f"memory://{tmp_path.name}/base"
    put(url, model)
    return url


def put(url: str, model: Path) -> None:
    system, root = fsspec.core.url_to_fs(url)
    for name, content in files(model).items():
        system.pipe_file(f"{root}/{name}", content)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.compute
def test_a_local_folder_is_used_without_a_copy(store, model, digest):
    base = find_base(str(model), store)
    assert (base.digest, base.address, base.folder()) == (digest, None, model)
    assert base.checkpoint is None
    assert not store.exists()


@pytest.mark.compute
def test_a_stages_folder_is_recognized_by_a_matching_checkpoint_record(store, model, digest):
    record = model.with_name("checkpoint.json")
    record.write_text("of another program")
    assert find_base(str(model), store).checkpoint is None
    checkpoint = records.checkpoint("cpt", artifact=digest, from_scratch=True)
    checkpoint.write(record)
    assert find_base(str(model), store).checkpoint == checkpoint
    (model / "config.json").write_text("[]")  # the model's files differ now
    assert find_base(str(model), store).checkpoint is None


@pytest.mark.compute
def test_an_address_is_fetched_once_into_a_folder_named_by_its_digest(
    store, model, digest, address
):
    base = find_base(address, store)
    assert (base.digest, base.address) == (digest, address)
    assert files(base.folder()) == files(model)
    assert base.folder() == store / "bases" / digest.removeprefix("sha256:") / "model"
    mtime = (base.folder() / "model.safetensors").stat().st_mtime_ns
    assert find_base(address, store).digest == digest
    assert (base.folder() / "model.safetensors").stat().st_mtime_ns == mtime
    assert not list((store / "bases/partial").iterdir())


@pytest.mark.compute
def test_a_base_changed_at_its_address_gets_a_new_digest_and_is_logged(
    store, digest, address, model, caplog
):
    find_base(address, store)
    (model / "config.json").write_text("[]")
    put(address, model)
    changed_base = find_base(address, store)
    assert changed_base.digest == ArtifactManifest.of(model).digest
    assert f"{address} was {digest}, and is {changed_base.digest} now" in caplog.text
    assert files(changed_base.folder()) == files(model)


@pytest.mark.compute
def test_a_killed_fetch_resumes_at_the_last_piece(store, digest, address, monkeypatch):
    system, _ = fsspec.core.url_to_fs(address)
    original, requests = type(system).cat_file, []

    def interrupt(self, path, start=None, end=None, **options):
        requests.append((path.rpartition("/")[2], start))
        if len(requests) == 4:
            raise KeyboardInterrupt
        return original(self, path, start, end, **options)

    monkeypatch.setattr(type(system), "cat_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        find_base(address, store)
    num_before, piece = len(requests), 8 << 20
    assert requests[-1] == ("model.safetensors", piece)
    assert find_base(address, store).digest == digest
    assert requests[num_before:] == [("model.safetensors", piece), ("model.safetensors", 2 * piece)]


@pytest.mark.compute
def test_the_same_files_at_a_second_address_keep_the_existing_folder(store, model, address):
    base = find_base(address, store)
    inode = (base.folder() / "config.json").stat().st_ino
    put(f"{address}-copy", model)
    assert find_base(f"{address}-copy", store).digest == base.digest
    assert (base.folder() / "config.json").stat().st_ino == inode
    assert not list((store / "bases/partial").iterdir())


@pytest.mark.compute
def test_hidden_files_and_drafts_are_no_part_of_a_base(store, model, digest, address):
    for name in (".msc", "deep/.hidden", "half.draft"):
        (model / name).write_text("other")
    put(address, model)
    base = find_base(address, store)
    assert base.digest == digest
    assert sorted(files(base.folder())) == [
        "config.json",
        "deep/tokenizer.json",
        "model.safetensors",
    ]


def test_a_base_changed_during_its_fetch_is_refused(store, address, monkeypatch):
    system, root = fsspec.core.url_to_fs(address)
    original = type(system).cat_file

    def change_config(self, path, *bounds, **options):
        content = original(self, path, *bounds, **options)
        if path.endswith("model.safetensors"):
            system.pipe(f"{root}/config.json", b"[]")
        return content

    monkeypatch.setattr(type(system), "cat_file", change_config)
    with pytest.raises(StoreError, match="changed during the fetch; repeat it"):
        find_base(address, store)


@pytest.mark.compute
def test_a_fetched_file_changed_later_is_refused_before_its_use(store, address):
    base = find_base(address, store)
    (base.folder() / "config.json").write_text("[]")
    with pytest.raises(StoreError, match=r"config\.json does not match the manifest") as error:
        base.folder()
    advice = re.search(r"delete that folder", str(error.value))
    assert advice
    shutil.rmtree(store / "bases" / base.digest.removeprefix("sha256:"))
    assert find_base(address, store).folder().is_dir()


def test_an_address_without_files_is_refused(store):
    with pytest.raises(NotFound, match="memory://nothing/here has no files"):
        find_base("memory://nothing/here", store)


@pytest.mark.parametrize("base", ["Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B@main"])
def test_a_hub_model_without_a_commit_is_refused_with_the_pinned_form(store, base):
    pattern = re.escape("pin one as Qwen/Qwen3-0.6B@<40 hexadecimal digits of the commit>")
    with pytest.raises(InputError, match=pattern) as error:
        find_base(base, store)
    guide = Path(__file__).parents[3] / "docs/guides/training.md"
    assert f"error: {error.value}".replace("@main,", ",") in guide.read_text()


@pytest.mark.parametrize("base", ["/gone", "./gone", "gone"])
def test_a_missing_folder_is_refused(store, base):
    with pytest.raises(InputError, match=f"there is no folder {Path(base)}; name the folder"):
        find_base(base, store)


def test_an_alias_of_a_version_is_refused(store):
    with pytest.raises(InputError, match="an alias may be moved; write models:/NAME/NUMBER"):
        find_base("models:/world@best", store)


@pytest.mark.waits
def test_a_folder_in_a_bucket_is_fetched(store, model, digest, bucket, tmp_path):
    url = f"{bucket}/{tmp_path.name}/base"
    put(url, model)
    base = find_base(url, store)
    assert base.digest == digest
    put(url, model)  # the same files with another time, which is checked again
    assert find_base(url, store).digest == digest


@pytest.mark.waits
def test_a_store_in_a_bucket_shares_a_base_between_machines(address, digest, bucket, tmp_path):
    url = f"{bucket}/{tmp_path.name}/store"
    first_copy, second_copy = open_copy(url, tmp_path / "mine"), open_copy(url, tmp_path / "yours")
    find_base(address, first_copy.root)
    base = find_base(address, second_copy.root)
    assert base.digest == digest
    assert ArtifactManifest.of(base.folder()).digest == digest


class TestRegistered:
    """Versions in a real MLflow, in a file."""

    pytestmark = pytest.mark.compute

    @pytest.fixture(scope="class")
    def store(self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("registered") / "store"
        open_registry(folder)  # makes the database, which takes seconds
        return folder

    def test_a_registered_world_model_is_a_base_by_either_reference(self, store, model, digest):
        checkpoint = records.checkpoint("sft").model_copy(update={"artifact": digest})
        world = WorldModel(stages=(checkpoint,), report=records.digest("report"))
        open_registry(store).register_world_model("agentworld-text", world, model)
        for reference in ("models:/agentworld-text/1", "agentworld-text@1"):
            base = find_base(reference, store)
            assert (base.digest, base.address) == (digest, "models:/agentworld-text/1")
            assert files(base.folder()) == files(model)
            assert base.checkpoint == checkpoint
        assert find_base(str(model), store).checkpoint == checkpoint

    def test_a_version_registered_by_another_program_is_a_base(
        self, store, model, digest, tmp_path
    ):
        import mlflow

        uri, name = f"sqlite:///{store.resolve() / 'mlflow.db'}", f"team.{tmp_path.name}"
        client = mlflow.MlflowClient(uri, uri)
        experiment = client.create_experiment(name, (store / "files").resolve().as_uri())
        run = client.create_run(experiment)
        client.log_artifacts(run.info.run_id, str(model), "weights")
        client.create_registered_model(name)
        source = f"{run.info.artifact_uri}/weights"
        client.create_model_version(name, source, run.info.run_id)
        base = find_base(f"models:/{name}/1", store)
        assert (base.digest, files(base.folder())) == (digest, files(model))

    def test_a_file_outside_of_the_versions_folder_is_refused(self, store, tmp_path, monkeypatch):
        from agentworld.lineage.mlflow_model import MlflowModel

        uri = f"sqlite:///{store.resolve() / 'mlflow.db'}"
        source = MlflowModel(uri, "world", 1, 0)
        monkeypatch.setattr(source, "_version", lambda: None)
        monkeypatch.setattr(source, "_files", lambda version: {"../outside": 1})
        monkeypatch.setattr(source, "_download", lambda *args: pytest.fail("it was fetched"))
        with pytest.raises(
            InputError, match=r"world/1 has a file '\.\./outside' outside its folder; remove it"
        ):
            source.fetch(tmp_path)

    def test_a_missing_registered_version_is_refused(self, store):
        with pytest.raises(NotFound, match=r"the registry has no models:/world/7"):
            find_base("models:/world/7", store)


class TestOfAHub:
    """Models of a hub on loopback, through huggingface_hub itself."""

    pytestmark = pytest.mark.waits

    @pytest.fixture
    def hub(self, monkeypatch):
        from fakes import hub

        with hub.running() as server:
            monkeypatch.setenv("HF_ENDPOINT", server.url)
            # The platform's own programs are offline too.
            monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
            yield server

    def test_a_pinned_model_is_fetched_once(self, store, model, digest, hub):
        from huggingface_hub.constants import is_offline_mode

        base = find_base(hub.add("Qwen/Qwen3-0.6B", COMMIT, model), store)
        assert (base.digest, base.address) == (digest, f"Qwen/Qwen3-0.6B@{COMMIT}")
        assert files(base.folder()) == files(model)
        num_requests = len(hub.requests)
        assert find_base(f"Qwen/Qwen3-0.6B@{COMMIT}", store).folder() == base.folder()
        assert len(hub.requests) == num_requests
        assert is_offline_mode()

    def test_files_not_needed_to_load_a_model_are_not_fetched(self, store, model, digest, hub):
        extras = {"pytorch_model.bin": b"pickle", "modeling.py": b"code", "original.pth": b"again"}
        assert find_base(hub.add("a/b", COMMIT, model, **extras), store).digest == digest

    def test_an_interrupted_fetch_resumes_with_the_missing_file(self, store, model, digest, hub):
        address = hub.add("a/b", COMMIT, model)
        hub.broken.add("model.safetensors")
        with pytest.raises(StoreError, match=f"a/b@{COMMIT} cannot be fetched from {hub.url}"):
            find_base(address, store)
        hub.broken.clear()
        hub.requests.clear()
        assert find_base(address, store).digest == digest
        assert hub.downloads() == ["model.safetensors"]

    @pytest.mark.parametrize("file", ["model.safetensors", "config.json"])
    def test_a_damaged_download_is_refused(self, store, model, digest, hub, file):
        address = hub.add("a/b", COMMIT, model)
        hub.garbled.add(file)
        with pytest.raises(StoreError, match=f"{file} of a/b@{COMMIT} is damaged"):
            find_base(address, store)
        hub.garbled.clear()
        assert find_base(address, store).digest == digest

    def test_a_missing_commit_is_refused(self, store, hub):
        with pytest.raises(InputError, match=f"{hub.url} has no a/b@{COMMIT}"):
            find_base(f"a/b@{COMMIT}", store)

    def test_an_unreachable_hub_is_a_store_error(self, store, monkeypatch):
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
        monkeypatch.setattr("time.sleep", lambda _: None)  # its client retries many times
        with pytest.raises(StoreError, match="set HF_ENDPOINT to a hub that is reached from here"):
            find_base(f"a/b@{COMMIT}", store)

    @pytest.mark.parametrize("name", ["my--org/model", "a..b/m"])
    def test_an_invalid_hub_model_name_is_refused(self, store, name):
        with pytest.raises(InputError, match=f"{name}@{COMMIT} names no model of a hub"):
            find_base(f"{name}@{COMMIT}", store)

    @pytest.mark.parametrize("answer", [b"<html></html>", b'{"a": 1}', b"[{}]"])
    def test_a_server_that_does_not_answer_as_a_hub_is_a_store_error(
        self, store, hub, monkeypatch, answer
    ):
        from fakes import hub as fake

        monkeypatch.setattr(fake, "_answer", lambda _, handler, **__: send_answer(handler, answer))
        with pytest.raises(StoreError, match=f"{hub.url} does not answer as a hub"):
            find_base(f"a/b@{COMMIT}", store)

    def test_a_password_of_the_hub_is_not_shown(self, store, monkeypatch, caplog, capfd):
        monkeypatch.setenv("HF_ENDPOINT", "http://me:s3cr3t@127.0.0.1:9")
        monkeypatch.setattr("time.sleep", lambda _: None)
        monkeypatch.setattr(logging.getLogger("huggingface_hub"), "propagate", True)
        with caplog.at_level(logging.DEBUG), pytest.raises(StoreError) as error:
            find_base(f"a/b@{COMMIT}", store)
        assert "http://me:***@127.0.0.1:9" in str(error.value)
        output = capfd.readouterr()
        assert "s3cr3t" not in f"{error.value} {caplog.text} {output.out} {output.err}"


def send_answer(handler, body: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
