"""Pinning for an engine in a separate image, as on a cluster."""

import json

import pytest

import make.registry
from agentworld.engine import programs
from agentworld.engine.programs import is_installed, program
from agentworld.errors import InputError
from agentworld.lineage.base import WorldModel
from agentworld.operations.installed import container_engine_version
from agentworld.operations.pinning import pin_model, pinned_manifest
from agentworld.recipes import Recipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.simulator import EnginePin
from agentworld.storage.simulators import PinnedSimulator
from make import records
from make.weights import weights

IMAGE, VERSION = records.digest("image"), "vllm 0.32.0"


@pytest.fixture
def elsewhere(monkeypatch):
    """The engine vLLM is in an image, and is not installed here."""
    missing_program = program("vllm")._replace(distributions=("an-engine-that-nobody-installs",))
    monkeypatch.setitem(programs._PROGRAMS, "vllm", missing_program)
    monkeypatch.setenv("AGENTWORLD_ENGINE_IMAGE", IMAGE)
    monkeypatch.setenv("AGENTWORLD_ENGINE_VERSION", VERSION)


def vllm_recipe(**simulate) -> Recipe:
    """A recipe for vLLM."""
    settings = {"context_tokens": 512, **simulate}
    return Recipe.model_validate({"name": "mine", "engine": {"kind": "vllm"}, "simulate": settings})


def test_an_installed_engine_ignores_the_environments_version(monkeypatch):
    monkeypatch.setenv("AGENTWORLD_ENGINE_VERSION", "transformers 1")
    assert is_installed("transformers-serve")
    assert container_engine_version("transformers-serve") is None


def test_an_external_endpoint_does_not_count_as_installed():
    assert not is_installed("openai")


@pytest.mark.usefixtures("elsewhere")
def test_an_engine_in_an_image_is_pinned_by_the_environments_image_and_version(tmp_path):
    pin = pinned_manifest(ArtifactManifest(files={}), tmp_path, vllm_recipe()).engine
    assert isinstance(pin, EnginePin)
    assert (pin.image, pin.version, pin.lock) == (IMAGE, VERSION, None)
    assert pin.arguments == ("--dtype", "float32", "--max-model-len", "512")


@pytest.mark.usefixtures("elsewhere")
def test_an_engine_in_an_image_without_a_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("AGENTWORLD_ENGINE_VERSION")
    with pytest.raises(InputError, match="vllm is not installed here; set AGENTWORLD_ENGINE_VER"):
        pinned_manifest(ArtifactManifest(files={}), tmp_path, vllm_recipe())


@pytest.mark.usefixtures("elsewhere")
def test_seeded_sampling_is_refused_without_an_installed_engine(tmp_path):
    recipe = vllm_recipe(sampling={"temperature": 1.0, "seed_policy": "seeded"})
    with pytest.raises(InputError, match="vllm is not installed here; set simulate.sampling.seed_"):
        pin_model(ArtifactManifest(files={}), tmp_path, recipe, tmp_path)


@pytest.mark.waits
@pytest.mark.usefixtures("elsewhere")
def test_the_step_simulate_pins_an_engine_that_is_only_in_an_image(tmp_path, monkeypatch):
    from agentworld.steps.run import run_by_name

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(weights())
    artifact = ArtifactManifest.of(model).digest
    stages = (records.checkpoint("rl", artifact=artifact),)
    world = WorldModel(stages=stages, report=records.digest("report"))
    ref = make.registry.registry(tmp_path).register_world_model("shell", world, model)
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(json.dumps(vllm_recipe().model_dump(include={"name", "engine", "simulate"})))
    simulator = PinnedSimulator.read(
        tmp_path / run_by_name("simulate", str(recipe), str(tmp_path), str(ref))
    )
    assert isinstance(simulator.manifest.engine, EnginePin)
    assert simulator.manifest.engine.image == IMAGE
    assert simulator.manifest.artifact == artifact
