import pytest
from hypothesis import given
from hypothesis import strategies as st

from accepting import accepts
from agentworld.domains.base import Start, domain_of
from agentworld.engine.programs import engine_arguments, recipe_of
from agentworld.errors import InputError
from agentworld.pinning.manifest import check_code, check_engine, check_files, pin, pin_endpoint
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.base import digest_bytes
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.episode import Episode, EpisodeOpening
from agentworld.records.simulator import Endpoint, Sampling
from agentworld.rendering.episode import episode_messages
from agentworld.rendering.messages import world_messages
from make import records
from make.weights import weights

ENGINE = EngineRecipe(kind="transformers-serve")
DTYPES = st.sampled_from(["float32", "bfloat16", "float16"])
ENGINES = st.builds(
    EngineRecipe,
    dtype=DTYPES,
    cache_blocks=st.integers(1),
    batch_tokens=st.integers(1),
) | st.builds(
    EngineRecipe,
    kind=st.just("vllm"),
    dtype=DTYPES,
    quantisation=st.none() | st.text() | st.sampled_from(["fp8", "--dtype", "--cb-num-blocks"]),
    parallelism=st.integers(1, 2**31 - 1),
    cache_blocks=st.integers(1),
    environment=st.sampled_from([{}, {"VLLM_BATCH_INVARIANT": "1"}]),
)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(weights())
    (folder / "tokenizer.json").write_text("{}")
    return folder


def pin_folder(folder, recipe=None, engine=ENGINE, trained_on=()):
    return pin(
        ArtifactManifest.of(folder),
        recipe or SimulateRecipe(),
        engine,
        lock=records.digest("constraints"),
        context_tokens=512,
        trained_on=trained_on,
    )


def test_pinned_files_code_and_engine_pass_all_checks(folder):
    manifest = pin_folder(folder)
    assert accepts(check_files, manifest, folder)
    assert accepts(check_code, manifest)
    assert accepts(check_engine, manifest, ENGINE)


def test_pinning_the_same_inputs_twice_gives_the_same_digest(folder):
    assert pin_folder(folder).digest == pin_folder(folder).digest


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "chat_template.jinja"])
def test_a_changed_file_changes_the_digest_and_is_refused(folder, name):
    manifest = pin_folder(folder)
    (folder / name).write_bytes(b"another")
    assert pin_folder(folder).digest != manifest.digest
    with pytest.raises(InputError, match=name):
        check_files(manifest, folder)


def test_a_manifest_whose_files_contradict_its_artifact_is_refused(folder):
    manifest = pin_folder(folder).model_copy(update={"artifact": records.digest("another")})
    with pytest.raises(InputError, match="not its artifact"):
        check_files(manifest, folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [("renderer", "chat-v0"), ("request", "none"), ("parser", "none")],
)
def test_a_manifest_with_other_code_versions_is_refused(folder, field, value):
    with pytest.raises(InputError, match=f"pins {field}"):
        check_code(pin_folder(folder).model_copy(update={field: value}))


def test_another_engine_environment_changes_the_digest_and_is_refused(folder):
    other_engine = ENGINE.model_copy(update={"environment": {"OMP_NUM_THREADS": "3"}})
    assert pin_folder(folder, engine=other_engine).digest != pin_folder(folder).digest
    with pytest.raises(InputError, match=r"pins engine\.environment {'OMP_NUM_THREADS': '3'}"):
        check_engine(pin_folder(folder, engine=other_engine), ENGINE)


def test_an_engine_with_other_arguments_is_refused(folder):
    with pytest.raises(InputError, match=r"pins engine\.arguments"):
        check_engine(pin_folder(folder), ENGINE.model_copy(update={"batch_tokens": 7}))


@pytest.mark.compute
@given(engine=ENGINES, concurrency=st.integers(1))
def test_a_manifest_alone_gives_the_arguments_of_its_engine(engine, concurrency):
    engine_recipe = engine.model_copy(update={"concurrency": concurrency})
    manifest = pin(
        ArtifactManifest(files={}),
        SimulateRecipe(),
        engine_recipe,
        lock=records.digest("constraints"),
        context_tokens=512,
    )
    restored_recipe = recipe_of(manifest.engine)
    assert engine_arguments(restored_recipe, 512) == engine_arguments(engine_recipe, 512)
    check_engine(manifest, restored_recipe)


@pytest.mark.parametrize(
    ("field", "value"),
    [("dtype", "float8"), ("arguments", ["--cb-num-blocks", "many"]), ("parallelism", 2)],
)
def test_an_engine_pin_without_a_matching_recipe_is_refused(field, value):
    fields = {"kind": "transformers-serve", "version": "5.19.0", "lock": records.digest("lock")}
    with pytest.raises(InputError, match="the manifest's engine cannot be started here"):
        recipe_of(records.manifest(engine={**fields, field: value}).engine)


def test_an_engine_of_another_version_is_refused(folder):
    manifest = pin_folder(folder)
    engine = manifest.engine.model_copy(update={"version": "transformers 4.0.0"})
    with pytest.raises(InputError, match=r"pins engine\.version 'transformers 4\.0\.0'"):
        check_engine(manifest.model_copy(update={"engine": engine}), ENGINE)


def test_a_pinned_file_that_may_contain_code_is_refused(folder):
    (folder / "modeling.py").touch()
    with pytest.raises(InputError, match=r"modeling\.py may contain code"):
        check_files(pin_folder(folder), folder)


def test_every_field_of_the_simulate_recipe_is_pinned(folder):
    recipe = SimulateRecipe(
        sampling=Sampling(temperature=0.5),
        control_text="be slow",
        retry={"attempts": 3},
        confidence={"min_agreement": 0.5, "num_samples": 3},
        domains={"shell": "a shell", "text": None},
    )
    manifest = pin_folder(folder, recipe)
    for field in SimulateRecipe.model_fields.keys() - {"context_tokens", "domains"}:
        assert getattr(manifest, field) == getattr(recipe, field)
    assert manifest.domains == {
        **records.pinned_domains("shell", system_prompt="a shell"),
        **records.pinned_domains("text"),
    }


def test_a_custom_system_prompt_may_be_empty(folder):
    manifest = pin_folder(folder, SimulateRecipe(domains={"shell": ""}))
    assert manifest.domains["shell"].system_prompt == ""


def test_a_recipe_without_domains_pins_the_domains_of_the_training_data(folder):
    manifest = pin_folder(folder, trained_on=["shell", "text"])
    assert manifest.domains == records.pinned_domains("shell", "text")
    text_manifest = pin_folder(folder, SimulateRecipe(domains={"text": None}), trained_on=["shell"])
    assert text_manifest.domains == records.pinned_domains("text")


def test_a_model_without_known_training_data_is_pinned_with_the_text_domain(folder):
    assert pin_folder(folder).domains == records.pinned_domains("text")
    assert pin_endpoint(ENDPOINT, SimulateRecipe()).domains == records.pinned_domains("text")


def test_an_unknown_domain_is_not_pinned(folder):
    with pytest.raises(InputError, match="sql"):
        pin_folder(folder, SimulateRecipe(domains={"sql": "a database"}))


@pytest.mark.parametrize("name", ["shell", "text"])
def test_a_manifest_with_another_domain_version_is_refused(folder, name):
    manifest = pin_folder(folder, SimulateRecipe(domains={"shell": None, "text": None}))
    domain = manifest.domains[name].model_copy(update={"version": f"{name}-v0"})
    changed_manifest = manifest.model_copy(update={"domains": manifest.domains | {name: domain}})
    with pytest.raises(InputError, match=rf"pins domains\.{name}\.version '{name}-v0'"):
        check_code(changed_manifest)


def test_a_manifest_with_an_unknown_domain_is_refused(folder):
    manifest = pin_folder(folder)
    domains = manifest.domains | {"sql": manifest.domains["text"]}
    with pytest.raises(InputError, match="sql"):
        check_code(manifest.model_copy(update={"domains": domains}))


def test_an_engine_is_pinned_with_its_dtype_quantization_and_parallelism(folder):
    engine = EngineRecipe(kind="vllm", dtype="bfloat16", quantisation="fp8", parallelism=2)
    result = pin_folder(folder, engine=engine).engine
    assert (result.dtype, result.quantisation, result.parallelism) == ("bfloat16", "fp8", 2)
    for option in ("--dtype bfloat16", "--quantization fp8", "--tensor-parallel-size 2"):
        assert option in " ".join(result.arguments)


def test_transformers_serve_rejects_parallelism():
    with pytest.raises(ValueError, match="takes neither quantisation nor parallelism"):
        EngineRecipe(parallelism=2)


ENDPOINT = Endpoint(url="http://127.0.0.1:8000", model="m")


def test_an_endpoint_is_pinned_without_an_artifact_and_files():
    manifest = pin_endpoint(ENDPOINT, SimulateRecipe(domains={"shell": "a shell"}))
    assert (manifest.artifact, manifest.files, manifest.engine) == (None, {}, ENDPOINT)
    assert manifest.context_tokens == 8_192
    recipe = SimulateRecipe(context_tokens=100_000)
    assert pin_endpoint(ENDPOINT, recipe).context_tokens == 100_000


def test_a_local_engine_is_refused_for_a_manifest_of_an_endpoint():
    with pytest.raises(InputError, match="answers at http://127.0.0.1:8000; no engine of ours"):
        check_engine(pin_endpoint(ENDPOINT, SimulateRecipe()), ENGINE)


@pytest.mark.parametrize("name", ["shell", "text"])
def test_the_served_system_prompt_equals_the_training_prompt(folder, name):
    opening = EpisodeOpening(
        run="r", domain=name, initial_state="a.txt: b", simulation_instruction="be slow"
    )
    manifest = pin_folder(folder, SimulateRecipe(domains={"shell": None, "text": None}))
    served_message, *_ = episode_messages(manifest, Episode.new("e", manifest.digest, opening))
    prompt = domain_of(name).prompt(Start(domain=name, text="a.txt: b"))
    instructed_prompt = prompt.model_copy(update={"simulation_instruction": "be slow"})
    training_message, *_ = world_messages(instructed_prompt, (), "")
    assert served_message == training_message


def test_the_served_manifest_bytes_match_the_simulator_digest(serve):
    response = serve().http("GET", "/manifest")
    assert digest_bytes(response.content) == response.headers["x-agentworld-simulator"]


def test_a_seeded_simulator_needs_an_engine_that_takes_seeds(folder):
    recipe = SimulateRecipe(sampling=Sampling(temperature=1.0, seed_policy="seeded"))
    with pytest.raises(InputError, match="takes no seed"):
        pin_folder(folder, recipe)


@pytest.mark.parametrize(
    ("confidence", "key"),
    [({"min_logprob": -1.0}, "min_logprob"), ({"num_samples": 3}, "num_samples")],
    ids=["a log-probability that is not told", "samples that are all the same"],
)
def test_an_uninformative_confidence_measure_is_refused(folder, confidence, key):
    recipe = SimulateRecipe(confidence=confidence)
    with pytest.raises(InputError, match=rf"simulate\.confidence\.{key}"):
        pin_folder(folder, recipe)
    new_recipe = recipe.model_copy(update={"sampling": Sampling(temperature=1.0)})
    assert pin_folder(folder, new_recipe, EngineRecipe(kind="vllm")).confidence == recipe.confidence


def test_several_samples_of_an_endpoint_at_temperature_0_are_refused():
    recipe = SimulateRecipe(confidence={"num_samples": 3, "min_logprob": -1.0})
    with pytest.raises(InputError, match="3 samples at temperature 0 are all the same"):
        pin_endpoint(ENDPOINT, recipe)
    new_recipe = recipe.model_copy(update={"sampling": Sampling(temperature=1.0)})
    assert pin_endpoint(ENDPOINT, new_recipe).confidence == recipe.confidence
