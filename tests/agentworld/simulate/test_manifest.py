import pytest

import make
from agentworld.errors import InputError
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.simulator import Sampling
from agentworld.simulate.manifest import check_code, check_engine, check_files, pin

ENGINE = EngineRecipe(kind="transformers-serve")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "tokenizer.json").write_text("{}")
    return folder


def pinned(folder, recipe=None, engine=ENGINE):
    return pin(
        ArtifactManifest.of(folder),
        recipe or SimulateRecipe(),
        engine,
        lock=make.digest("constraints"),
        context_tokens=512,
    )


def test_what_was_pinned_may_be_served(folder):
    manifest = pinned(folder)
    check_files(manifest, folder)
    check_code(manifest)
    check_engine(manifest, ENGINE)


def test_the_same_things_pinned_twice_are_the_same_simulator(folder):
    assert pinned(folder).digest == pinned(folder).digest


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "chat_template.jinja"])
def test_another_byte_in_any_file_is_another_simulator_and_is_not_served(folder, name):
    manifest = pinned(folder)
    (folder / name).write_bytes(b"another")
    assert pinned(folder).digest != manifest.digest
    with pytest.raises(InputError, match=name):
        check_files(manifest, folder)


def test_a_manifest_whose_files_are_not_its_artifact_is_refused(folder):
    manifest = pinned(folder).model_copy(update={"artifact": make.digest("another")})
    with pytest.raises(InputError, match="not its artifact"):
        check_files(manifest, folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [("renderer", "chat-v0"), ("parser", "none"), ("system_prompt", ""), ("domains", ("web",))],
)
def test_other_code_does_not_serve_a_manifest(folder, field, value):
    with pytest.raises(InputError, match=f"pins {field}"):
        check_code(pinned(folder).model_copy(update={field: value}))


def test_an_engine_with_other_arguments_is_not_the_pinned_one(folder):
    with pytest.raises(InputError, match=r"pins engine\.arguments"):
        check_engine(pinned(folder), ENGINE.model_copy(update={"batch_tokens": 7}))


def test_an_engine_of_another_version_is_not_the_pinned_one(folder):
    manifest = pinned(folder)
    engine = manifest.engine.model_copy(update={"version": "transformers 4.0.0"})
    with pytest.raises(InputError, match=r"pins engine\.version 'transformers 4\.0\.0'"):
        check_engine(manifest.model_copy(update={"engine": engine}), ENGINE)


def test_a_seeded_simulator_needs_an_engine_that_takes_seeds(folder):
    seeded = SimulateRecipe(sampling=Sampling(temperature=1.0, seed_policy="seeded"))
    with pytest.raises(InputError, match="takes no seed"):
        pinned(folder, seeded)
