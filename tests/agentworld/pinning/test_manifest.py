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


def test_what_was_pinned_may_be_served(folder):
    manifest = pinned(folder)
    assert accepts(check_files, manifest, folder)
    assert accepts(check_code, manifest)
    assert accepts(check_engine, manifest, ENGINE)


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
    manifest = pinned(folder).model_copy(update={"artifact": records.digest("another")})
    with pytest.raises(InputError, match="not its artifact"):
        check_files(manifest, folder)


@pytest.mark.parametrize(
    ("field", "value"),
    [("renderer", "chat-v0"), ("request", "none"), ("parser", "none")],
)
def test_other_code_does_not_serve_a_manifest(folder, field, value):
    with pytest.raises(InputError, match=f"pins {field}"):
        check_code(pinned(folder).model_copy(update={field: value}))


def test_an_engine_with_another_environment_is_not_the_pinned_one(folder):
    other = ENGINE.model_copy(update={"environment": {"OMP_NUM_THREADS": "3"}})
    assert pinned(folder, engine=other).digest != pinned(folder).digest
    with pytest.raises(InputError, match=r"pins engine\.environment {'OMP_NUM_THREADS': '3'}"):
        check_engine(pinned(folder, engine=other), ENGINE)


def test_an_engine_with_other_arguments_is_not_the_pinned_one(folder):
    with pytest.raises(InputError, match=r"pins engine\.arguments"):
        check_engine(pinned(folder), ENGINE.model_copy(update={"batch_tokens": 7}))


@pytest.mark.compute
@given(engine=ENGINES, concurrency=st.integers())
def test_a_pinned_engine_is_started_again_from_its_manifest_alone(engine, concurrency):
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
def test_an_engine_that_no_recipe_describes_is_not_started(field, value):
    known = {"kind": "transformers-serve", "version": "5.19.0", "lock": records.digest("lock")}
    with pytest.raises(InputError, match="the manifest's engine cannot be started here"):
        recipe_of(records.manifest(engine={**known, field: value}).engine)


def test_an_engine_of_another_version_is_not_the_pinned_one(folder):
    manifest = pinned(folder)
    engine = manifest.engine.model_copy(update={"version": "transformers 4.0.0"})
    with pytest.raises(InputError, match=r"pins engine\.version 'transformers 4\.0\.0'"):
        check_engine(manifest.model_copy(update={"engine": engine}), ENGINE)


def test_a_file_that_may_run_code_is_not_served_though_it_was_pinned(folder):
    (folder / "modeling.py").touch()
    with pytest.raises(InputError, match=r"modeling\.py may contain code"):
        check_files(pinned(folder), folder)


def test_all_that_a_recipe_says_of_a_world_is_pinned(folder):
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


def test_a_prompt_of_ones_own_may_be_empty(folder):
    manifest = pinned(folder, SimulateRecipe(domains={"shell": ""}))
    assert manifest.domains["shell"].system_prompt == ""


def test_a_recipe_that_names_no_domain_pins_those_of_the_checkpoints_data(folder):
    manifest = pinned(folder, trained_on=["shell", "text"])
    assert manifest.domains == records.pinned_domains("shell", "text")
    named = pinned(folder, SimulateRecipe(domains={"text": None}), trained_on=["shell"])
    assert named.domains == records.pinned_domains("text")


def test_a_model_from_elsewhere_is_pinned_as_text(folder):
    assert pinned(folder).domains == records.pinned_domains("text")
    assert pin_endpoint(THERE, SimulateRecipe()).domains == records.pinned_domains("text")


def test_a_domain_that_nobody_knows_is_not_pinned(folder):
    with pytest.raises(InputError, match="sql"):
        pinned(folder, SimulateRecipe(domains={"sql": "a database"}))


@pytest.mark.parametrize("name", ["shell", "text"])
def test_other_code_of_a_domain_does_not_serve_a_manifest(folder, name):
    manifest = pinned(folder, SimulateRecipe(domains={"shell": None, "text": None}))
    other = manifest.domains[name].model_copy(update={"version": f"{name}-v0"})
    changed = manifest.model_copy(update={"domains": manifest.domains | {name: other}})
    with pytest.raises(InputError, match=rf"pins domains\.{name}\.version '{name}-v0'"):
        check_code(changed)


def test_a_manifest_with_a_domain_that_nobody_knows_is_not_served(folder):
    manifest = pinned(folder)
    unknown = manifest.domains | {"sql": manifest.domains["text"]}
    with pytest.raises(InputError, match="sql"):
        check_code(manifest.model_copy(update={"domains": unknown}))


def test_an_engine_is_pinned_with_how_it_computes(folder):
    engine = EngineRecipe(kind="vllm", dtype="bfloat16", quantisation="fp8", parallelism=2)
    made = pinned(folder, engine=engine).engine
    assert (made.dtype, made.quantisation, made.parallelism) == ("bfloat16", "fp8", 2)
    for words in ("--dtype bfloat16", "--quantization fp8", "--tensor-parallel-size 2"):
        assert words in " ".join(made.arguments)


def test_transformers_serve_is_asked_for_nothing_that_it_cannot_do():
    with pytest.raises(ValueError, match="takes neither quantisation nor parallelism"):
        EngineRecipe(parallelism=2)


THERE = Endpoint(url="http://127.0.0.1:8000", model="m")


def test_an_endpoint_is_pinned_without_what_nobody_can_see():
    manifest = pin_endpoint(THERE, SimulateRecipe(domains={"shell": "a shell"}))
    assert (manifest.artifact, manifest.files, manifest.engine) == (None, {}, THERE)
    assert manifest.context_tokens == 8_192
    wide = SimulateRecipe(context_tokens=100_000)
    assert pin_endpoint(THERE, wide).context_tokens == 100_000


def test_no_engine_of_ours_serves_the_world_of_an_endpoint():
    with pytest.raises(InputError, match="answers at http://127.0.0.1:8000; no engine of ours"):
        check_engine(pin_endpoint(THERE, SimulateRecipe()), ENGINE)


@pytest.mark.parametrize("name", ["shell", "text"])
def test_the_pinned_prompt_is_asked_byte_for_byte_as_the_world_was_trained(folder, name):
    opening = EpisodeOpening(
        run="r", domain=name, initial_state="a.txt: b", simulation_instruction="be slow"
    )
    manifest = pinned(folder, SimulateRecipe(domains={"shell": None, "text": None}))
    asked, *_ = episode_messages(manifest, Episode.new("e", manifest.digest, opening))
    prompt = domain_of(name).prompt(Start(domain=name, text="a.txt: b"))
    instructed = prompt.model_copy(update={"simulation_instruction": "be slow"})
    trained, *_ = world_messages(instructed, (), "")
    assert asked == trained


def test_a_service_shows_the_very_bytes_of_its_digest(serve):
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
def test_a_measure_that_cannot_tell_answers_apart_is_refused(folder, confidence, key):
    recipe = SimulateRecipe(confidence=confidence)
    with pytest.raises(InputError, match=rf"simulate\.confidence\.{key}"):
        pinned(folder, recipe)
    drawn = recipe.model_copy(update={"sampling": Sampling(temperature=1.0)})
    assert pinned(folder, drawn, EngineRecipe(kind="vllm")).confidence == recipe.confidence


def test_an_endpoint_is_not_asked_again_and_again_for_the_same_answer():
    recipe = SimulateRecipe(confidence={"num_samples": 3, "min_logprob": -1.0})
    with pytest.raises(InputError, match="3 samples at temperature 0 are all the same"):
        pin_endpoint(THERE, recipe)
    drawn = recipe.model_copy(update={"sampling": Sampling(temperature=1.0)})
    assert pin_endpoint(THERE, drawn).confidence == recipe.confidence
