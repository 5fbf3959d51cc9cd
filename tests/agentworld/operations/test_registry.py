import pytest

from agentworld.engine.process import LOOPBACK, free_port
from agentworld.errors import EvidenceError, InputError, NotFound, StoreError
from agentworld.lineage.base import WorldModel
from agentworld.lineage.memory import MemoryRegistry
from agentworld.operations.registry import (
    check_store,
    find_world_model,
    open_registry,
    registry_digest,
)
from agentworld.signing.keys import ensure_signer
from machines.mlflow_server import serving
from make import records
from make.story import signed_as, story


def test_an_invalid_environment_variable_is_refused_with_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTWORLD_MLFLOW_PATIENCE_SECONDS", "some time")
    with pytest.raises(InputError, match="the environment is wrong at agentworld_mlflow_patience"):
        open_registry(tmp_path)


def test_empty_variables_select_the_stores_own_registry(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    digest = registry_digest()
    for name in ("MLFLOW_TRACKING_URI", "AGENTWORLD_MLFLOW_PATIENCE_SECONDS"):
        monkeypatch.setenv(name, "")
    assert registry_digest() == digest
    with pytest.raises(NotFound, match="holds no registry"):
        check_store(tmp_path)


@pytest.mark.waits
def test_the_callers_patience_limits_the_wait_for_an_unreachable_registry(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{LOOPBACK}:{free_port()}")
    with pytest.raises(StoreError, match="did not respond for 0 s"):
        open_registry(tmp_path, max_patience_seconds=0).versions()


def test_a_readable_version_is_found_beside_an_unreadable_version_of_its_weights(tmp_path):
    weights = records.digest("weights")
    stages = (records.checkpoint("rl", artifact=weights),)
    world = WorldModel(stages=stages, report=records.digest("report"))

    class GarbledRegistry(MemoryRegistry):
        unreadable = ("shell",)

        def world_model(self, ref):
            if ref.name in self.unreadable:
                raise EvidenceError(f"{ref} is garbled")
            return super().world_model(ref)

    registry = GarbledRegistry()
    for name in ("shell", "world"):
        registry.register_world_model(name, world, tmp_path / "model")
    refs = registry.world_models_of(weights)
    assert find_world_model(refs, registry, {})[1] == world
    registry.unreadable = ("shell", "world")
    with pytest.raises(EvidenceError, match="world@1 is garbled"):
        find_world_model(refs, registry, {})


def test_a_version_signed_by_a_step_is_preferred_to_an_untrusted_copy(tmp_path):
    history, other_signer = story(tmp_path), ensure_signer(tmp_path / "keys/stranger")
    registry, keys = history.sources.registry, history.sources.step_keys
    world = registry.world_model(history.world_model)
    checkpoint = records.checkpoint("rl", artifact=world.artifact, data=records.digest("another"))
    copy = WorldModel(stages=(checkpoint,), report=records.digest("report"))
    signature = signed_as("a-copy", copy, other_signer)
    ref = registry.register_world_model("a-copy", copy, tmp_path, signature=signature)
    assert find_world_model([ref, history.world_model], registry, keys) == (
        history.world_model,
        world,
    )
    assert find_world_model([ref, history.world_model], registry, {}) == (ref, copy)
    assert find_world_model([ref], registry, keys) == (ref, copy)
    assert find_world_model([], registry, keys) == (None, None)


@pytest.mark.waits
def test_a_server_with_workspaces_keeps_artifacts_outside_the_store(tmp_path, monkeypatch):
    store, model = tmp_path / "store", tmp_path / "model"
    for folder in (store, model):
        folder.mkdir()
    (model / "weights").write_bytes(b"kolu")
    world = WorldModel(stages=(records.checkpoint("rl"),), report=records.digest("report"))
    with serving(tmp_path) as server:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{LOOPBACK}:{server.port}")
        registry = open_registry(store)
        assert registry.world_model(registry.register_world_model("worlds", world, model)) == world
    assert not list(store.iterdir())
