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
    cache_blocks=st.integers(),
    batch_tokens=st.integers(),
) | st.builds(
    EngineRecipe,
    kind=st.just("vllm"),
    dtype=DTYPES,
    quantisation=st.none() | st.text() | st.sampled_from(["fp8", "--dtype", "--cb-num-blocks"]),
    parallelism=st.integers(1, 2**31 - 1),
    cache_blocks=st.integers(),
    environment=st.sampled_from([{}, {"VLLM_BATCH_INVARIANT": "1"}]),
)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(weights())
    (folder / "tokenizer.json").write_text("{}")
    return folder


def pinned(folder, recipe=None, engine=ENGINE, trained_on=()):
    return pin(
        ArtifactManifest.of(folder),
        recipe or SimulateRecipe(),
        engine,
        lock=records.digest("constraints"),
        context_tokens=512,
        trained_on=trained_on,
    )


def test_pinned_files_code_and_engine_pass_all_checks(folder):
    manifest = pinned(folder)
    assert accepts(check_files, manifest, folder)
    assert accepts(check_code, manifest)
    assert accepts(check_engine, manifest, ENGINE)


def test_pinning_the_same_inputs_twice_gives_the_same_digest(folder):
    assert pinned(folder).digest == pinned(folder).digest


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "chat_template.jinja"])
def test_a_changed_file_changes_the_digest_and_is_refused(folder, name):
    manifest = pinned(folder)
    (folder / name).write_bytes(b"another")
    assert pinned(folder).digest != manifest.digest
    with pytest.raises(InputError, match=name):
        check_files(manifest, folder)


def test_a_manifest_whose_files_contradict_its_artifact_is_refused(folder):
    manifest = pinned(folder).model_copy(update={"artifact": records.digest("another")})
    with pytest.raises(InputError, match="not its artifact"):
        check_files(manifest, folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [("renderer", "chat-v0"), ("request", "none"), ("parser", "none")],
)
def test_a_manifest_with_other_code_versions_is_refused(folder, field, value):
    with pytest.raises(InputError, match=f"pins {field}"):
        check_code(pinned(folder).model_copy(update={field: value}))


def test_another_engine_environment_changes_the_digest_and_is_refused(folder):
    other = ENGINE.model_copy(update={"environment": {"OMP_NUM_THREADS": "3"}})
    assert pinned(folder, engine=other).digest != pinned(folder).digest
    with pytest.raises(InputError, match=r"pins engine\.environment {'OMP_NUM_THREADS': '3'}"):
        check_engine(pinned(folder, engine=other), ENGINE)


def test_an_engine_with_other_arguments_is_refused(folder):
    with pytest.raises(InputError, match=r"pins engine\.arguments"):
        check_engine(pinned(folder), ENGINE.model_copy(update={"batch_tokens": 7}))


@pytest.mark.compute
@given(engine=ENGINES, concurrency=st.integers())
def test_a_manifest_alone_gives_the_arguments_of_its_engine(engine, concurrency):
    asked = engine.model_copy(update={"concurrency": concurrency})
    made = pin(
        ArtifactManifest(files={}),
        SimulateRecipe(),
        asked,
        lock=records.digest("constraints"),
        context_tokens=512,
    )
    again = recipe_of(made.engine)
    assert engine_arguments(again, 512) == engine_arguments(asked, 512)
    check_engine(made, again)


@pytest.mark.parametrize(
    ("field", "value"),
    [("dtype", "float8"), ("arguments", ["--cb-num-blocks", "many"]), ("parallelism", 2)],
)
def test_an_engine_pin_without_a_matching_recipe_is_refused(field, value):
    known = {"kind": "transformers-serve", "version": "5.19.0", "lock": records.digest("lock")}
    with pytest.raises(InputError, match="the manifest's engine cannot be started here"):
        recipe_of(records.manifest(engine={**known, field: value}).engine)


def test_an_engine_of_another_version_is_refused(folder):
    manifest = pinned(folder)
    engine = manifest.engine.model_copy(update={"version": "transformers 4.0.0"})
    with pytest.raises(InputError, match=r"pins engine\.version 'transformers 4\.0\.0'"):
        check_engine(manifest.model_copy(update={"engine": engine}), ENGINE)


def test_a_pinned_file_that_may_contain_code_is_refused(folder):
    (folder / "modeling.py").touch()
    with pytest.raises(InputError, match=r"modeling\.py may contain code"):
        check_files(pinned(folder), folder)


def test_every_field_of_the_simulate_recipe_is_pinned(folder):
    recipe = SimulateRecipe(
        sampling=Sampling(temperature=0.5),
        control_text="be slow",
        retry={"attempts": 3},
        confidence={"min_agreement": 0.5, "num_samples": 3},
        domains={"shell": "a shell", "text": None},
    )
    manifest = pinned(folder, recipe)
    for field in SimulateRecipe.model_fields.keys() - {"context_tokens", "domains"}:
        assert getattr(manifest, field) == getattr(recipe, field)
    assert manifest.domains == {
        **records.pinned_domains("shell", system_prompt="a shell"),
        **records.pinned_domains("text"),
    }


def test_a_custom_system_prompt_may_be_empty(folder):
    manifest = pinned(folder, SimulateRecipe(domains={"shell": ""}))
    assert manifest.domains["shell"].system_prompt == ""


def test_a_recipe_without_domains_pins_the_domains_of_the_training_data(folder):
    manifest = pinned(folder, trained_on=["shell", "text"])
    assert manifest.domains == records.pinned_domains("shell", "text")
    named = pinned(folder, SimulateRecipe(domains={"text": None}), trained_on=["shell"])
    assert named.domains == records.pinned_domains("text")


def test_a_model_without_known_training_data_is_pinned_with_the_text_domain(folder):
    assert pinned(folder).domains == records.pinned_domains("text")
    assert pin_endpoint(THERE, SimulateRecipe()).domains == records.pinned_domains("text")


def test_an_unknown_domain_is_not_pinned(folder):
    with pytest.raises(InputError, match="sql"):
        pinned(folder, SimulateRecipe(domains={"sql": "a database"}))


@pytest.mark.parametrize("name", ["shell", "text"])
def test_a_manifest_with_another_domain_version_is_refused(folder, name):
    manifest = pinned(folder, SimulateRecipe(domains={"shell": None, "text": None}))
    other = manifest.domains[name].model_copy(update={"version": f"{name}-v0"})
    changed = manifest.model_copy(update={"domains": manifest.domains | {name: other}})
    with pytest.raises(InputError, match=rf"pins domains\.{name}\.version '{name}-v0'"):
        check_code(changed)


def test_a_manifest_with_an_unknown_domain_is_refused(folder):
    manifest = pinned(folder)
    unknown = manifest.domains | {"sql": manifest.domains["text"]}
    with pytest.raises(InputError, match="sql"):
        check_code(manifest.model_copy(update={"domains": unknown}))


def test_an_engine_is_pinned_with_its_dtype_quantization_and_parallelism(folder):
    engine = EngineRecipe(kind="vllm", dtype="bfloat16", quantisation="fp8", parallelism=2)
    made = pinned(folder, engine=engine).engine
    assert (made.dtype, made.quantisation, made.parallelism) == ("bfloat16", "fp8", 2)
    for words in ("--dtype bfloat16", "--quantization fp8", "--tensor-parallel-size 2"):
        assert words in " ".join(made.arguments)


def test_transformers_serve_rejects_parallelism():
    with pytest.raises(ValueError, match="takes neither quantisation nor parallelism"):
        EngineRecipe(parallelism=2)


THERE = Endpoint(url="http://127.0.0.1:8000", model="m")


def test_an_endpoint_is_pinned_without_an_artifact_and_files():
    manifest = pin_endpoint(THERE, SimulateRecipe(domains={"shell": "a shell"}))
    assert (manifest.artifact, manifest.files, manifest.engine) == (None, {}, THERE)
    assert manifest.context_tokens == 8_192
    wide = SimulateRecipe(context_tokens=100_000)
    assert pin_endpoint(THERE, wide).context_tokens == 100_000


def test_a_local_engine_is_refused_for_a_manifest_of_an_endpoint():
    with pytest.raises(InputError, match="answers at http://127.0.0.1:8000; no engine of ours"):
        check_engine(pin_endpoint(THERE, SimulateRecipe()), ENGINE)


@pytest.mark.parametrize("name", ["shell", "text"])
def test_the_served_system_prompt_equals_the_training_prompt(folder, name):
    opening = EpisodeOpening(
        run="r", domain=name, initial_state="a.txt: b", simulation_instruction="be slow"
    )
    manifest = pinned(folder, SimulateRecipe(domains={"shell": None, "text": None}))
    asked, *_ = episode_messages(manifest, Episode.new("e", manifest.digest, opening))
    prompt = domain_of(name).prompt(Start(domain=name, text="a.txt: b"))
    instructed = prompt.model_copy(update={"simulation_instruction": "be slow"})
    trained, *_ = world_messages(instructed, (), "")
    assert asked == trained


def test_the_served_manifest_bytes_match_the_simulator_digest(serve):
    told = serve().http("GET", "/manifest")
    assert digest_bytes(told.content) == told.headers["x-agentworld-simulator"]


def test_a_seeded_simulator_needs_an_engine_that_takes_seeds(folder):
    seeded = SimulateRecipe(sampling=Sampling(temperature=1.0, seed_policy="seeded"))
    with pytest.raises(InputError, match="takes no seed"):
        pinned(folder, seeded)


@pytest.mark.parametrize(
    ("confidence", "key"),
    [({"min_logprob": -1.0}, "min_logprob"), ({"num_samples": 3}, "num_samples")],
    ids=["a log-probability that is not told", "samples that are all the same"],
)
def test_an_uninformative_confidence_measure_is_refused(folder, confidence, key):
    recipe = SimulateRecipe(confidence=confidence)
    with pytest.raises(InputError, match=rf"simulate\.confidence\.{key}"):
        pinned(folder, recipe)
    drawn = recipe.model_copy(update={"sampling": Sampling(temperature=1.0)})
    assert pinned(folder, drawn, EngineRecipe(kind="vllm")).confidence == recipe.confidence


def test_several_samples_of_an_endpoint_at_temperature_0_are_refused():
    recipe = SimulateRecipe(confidence={"num_samples": 3, "min_logprob": -1.0})
    with pytest.raises(InputError, match="3 samples at temperature 0 are all the same"):
        pin_endpoint(THERE, recipe)
    drawn = recipe.model_copy(update={"sampling": Sampling(temperature=1.0)})
    assert pin_endpoint(THERE, drawn).confidence == recipe.confidence
