"""External weights: which are imported, which are refused, and when."""

import json
import pickle
import shutil

import pytest

from agentworld.errors import EvidenceError, InputError
from agentworld.operations.import_world import import_world
from agentworld.operations.pinning import with_world
from agentworld.recipes import Recipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.progress import ignore_progress
from agentworld.storage.simulators import PinnedSimulator, SimulatorStore
from make import records
from make.weights import weights
from waiting import outcome

SHELL = "You simulate a Linux shell."


def recipe(kind="transformers-serve", **sampling):
    sampling_fields = {"max_tokens": 40, **sampling}
    return Recipe(name="r", engine={"kind": kind}, simulate={"sampling": sampling_fields})


def import_model(model, store, custom_recipe=None):
    return import_world(custom_recipe or recipe(), store, model, ignore_progress)


@pytest.fixture
def model(tiny_model, tmp_path):
    return shutil.copytree(tiny_model, tmp_path / "elsewhere")


@pytest.mark.compute
def test_imported_weights_become_a_simulator_without_reports(model, tmp_path):
    simulator = import_model(model, tmp_path / "store")
    manifest = simulator.manifest
    assert set(manifest.files) == {path.name for path in model.iterdir()}
    assert manifest.context_tokens == 1024
    assert manifest.domains == records.pinned_domains("text")
    assert simulator.reports == []
    simulator.verify()


@pytest.mark.compute
def test_the_same_weights_imported_twice_are_the_same_simulator(model, tmp_path):
    first = import_model(model, tmp_path / "store")
    assert import_model(model, tmp_path / "store") == first
    assert SimulatorStore(tmp_path / "store").all() == [first]


@pytest.mark.compute
def test_an_imported_world_uses_its_generation_config_and_the_given_prompts(model, tmp_path):
    defaults = {"do_sample": True, "temperature": 0.6, "top_k": 20}
    (model / "generation_config.json").write_text(json.dumps(defaults))
    custom_recipe = with_world(recipe(), domains={"shell": None, "text": SHELL})
    manifest = import_model(model, tmp_path / "store", custom_recipe).manifest
    assert (manifest.sampling.temperature, manifest.sampling.top_k) == (0.6, 20)
    text_domains = records.pinned_domains("text", system_prompt=SHELL)
    assert manifest.domains == records.pinned_domains("shell") | text_domains


def add_adapter(model):
    (model / "adapter").mkdir()
    (model / "adapter" / "adapter_config.json").write_text('{"r": 0}')


REFUSED_FOLDERS = {
    "code": (lambda model: (model / "run.py").touch(), r"run\.py may contain code"),
    "no template": (lambda model: (model / "chat_template.jinja").unlink(), "no chat template"),
    "a template that reaches for Python": (
        lambda model: (model / "chat_template.jinja").write_text("{{ ''.__class__.__mro__ }}"),
        "access to attribute '__class__' of 'str' object is unsafe",
    ),
    "an adapter without a rank": (add_adapter, r"adapter_config\.json cannot be used: r"),
}


@pytest.mark.compute
@pytest.mark.parametrize(("spoil", "words"), REFUSED_FOLDERS.values(), ids=REFUSED_FOLDERS)
def test_a_folder_that_cannot_be_served_is_refused_before_the_copy(model, tmp_path, spoil, words):
    spoil(model)
    with pytest.raises(InputError, match=words):
        import_model(model, tmp_path / "store")
    assert not (tmp_path / "store").exists()


COSTLY_TEMPLATES = {
    "a number": "{{ 7 ** 99999999 }}",
    "a text": "{{ 'a' * 3000000000 * (messages | length) }}",
    "nested ranges": "{% for a in range(99999) %}" * 4 + "{% endfor %}" * 4,
}


@pytest.mark.compute
@pytest.mark.parametrize("template", COSTLY_TEMPLATES.values(), ids=COSTLY_TEMPLATES)
def test_a_template_that_takes_too_much_time_or_memory_is_refused(model, tmp_path, template):
    (model / "chat_template.jinja").write_text(template)
    error = outcome(lambda: import_model(model, tmp_path / "store"))
    assert isinstance(error, InputError)
    assert "too much time or memory" in str(error)
    assert not (tmp_path / "store").exists()


INVALID_WEIGHTS = {
    "a pickle": (lambda _: pickle.dumps({"w": [1.0]}), "is not a safetensors file"),
    "a header that is nested 200,000 deep": (
        lambda _: (10**6).to_bytes(8, "little") + b'{"a":' * 200_000,
        "is not a safetensors file",
    ),
    "a file that is cut off": (lambda data: data[:-1], "is not a safetensors file"),
    "weights of another model": (lambda _: weights(w=[3]), "lacks 25 of the weights of Qwen3For"),
}


@pytest.mark.compute
@pytest.mark.parametrize(("make_weights", "words"), INVALID_WEIGHTS.values(), ids=INVALID_WEIGHTS)
def test_an_invalid_weights_file_is_not_pinned(model, tmp_path, make_weights, words):
    path = model / "model.safetensors"
    path.write_bytes(make_weights(path.read_bytes()))
    with pytest.raises(InputError, match=words):
        import_model(model, tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.compute
def test_a_pinned_simulator_with_an_invalid_weights_file_fails_verification(model, tmp_path):
    simulator = import_model(model, tmp_path / "store")
    path = simulator.model / "model.safetensors"
    path.unlink()
    path.write_bytes(b"garbage")
    files = ArtifactManifest.of(simulator.model)
    fields = {"artifact": files.digest, "files": files.files}
    manifest = simulator.manifest.model_copy(update=fields)
    folder = simulator.folder.rename(simulator.folder.with_name(manifest.digest[7:]))
    (folder / "manifest.json").unlink()
    manifest.write(folder / "manifest.json")
    with pytest.raises(EvidenceError, match="is not a safetensors file"):
        PinnedSimulator.read(folder).verify()


@pytest.mark.compute
def test_max_tokens_equal_to_the_context_length_is_refused(model, tmp_path):
    with pytest.raises(InputError, match=r"1024 tokens leaves no room for a prompt in a context"):
        import_model(model, tmp_path / "store", recipe(max_tokens=1024))
    assert not (tmp_path / "store").exists()


def test_an_invalid_domain_name_is_refused():
    with pytest.raises(InputError, match=r"cannot be pinned so: domains\.Web Shop"):
        with_world(recipe(), domains={"Web Shop": None})


@pytest.mark.compute
def test_seeded_sampling_is_pinned_after_a_check_of_the_engine(model, tmp_path):
    custom_recipe = recipe("vllm", temperature=1.0, seed_policy="seeded")
    manifest = import_model(model, tmp_path / "store", custom_recipe).manifest
    assert manifest.sampling.seed_policy == "seeded"
    assert (tmp_path / "store" / "logs" / "seeds.log").stat().st_size > 0
