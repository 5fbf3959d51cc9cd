"""MLflow's own pages show a version's origin, and data sets."""

import json
import sqlite3
from pathlib import Path

import pytest

import make.registry
from agentworld.engine.process import LOOPBACK
from agentworld.errors import StoreError
from agentworld.lineage.base import Agent, WorldModel
from agentworld.lineage.data_input import data_inputs
from agentworld.lineage.mlflow import MlflowRegistry
from agentworld.records.episode import new_name
from machines.mlflow_server import MlflowServer
from make import records
from make.story import DATA, EARLY_DATA, world_of

pytestmark = pytest.mark.waits


@pytest.fixture(scope="module", params=["database", "server"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "database":
        return make.registry.database(tmp_path_factory.mktemp("mlflow"))
    server: MlflowServer = request.getfixturevalue("server")
    return f"http://{LOOPBACK}:{server.port}"


@pytest.fixture
def registry(url: str, tmp_path: Path) -> MlflowRegistry:
    return MlflowRegistry(url, tmp_path / "artifacts" if url.startswith("sqlite") else None)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights").write_bytes(b"weights")
    return tmp_path / "model"


def run_of(url: str, ref):
    from mlflow import MlflowClient

    client = MlflowClient(url, url)
    version = client.get_model_version(ref.name, str(ref.version))
    return version, client.get_run(version.run_id)


def agent(run: str) -> Agent:
    checkpoint = records.checkpoint(
        "agent", artifact=records.digest("agent"), simulator=records.digest("s")
    )
    return Agent(checkpoint=checkpoint, run=run)


def datasets_of(run) -> dict[str, tuple[str, str]]:
    """The digest and the readers of each data set."""
    inputs = run.inputs.dataset_inputs
    return {entry.dataset.name: (entry.dataset.digest, entry.tags[0].value) for entry in inputs}


def test_a_world_models_run_has_its_data_as_inputs_with_the_stages_that_read_it(
    registry, url, model
):
    ref = registry.register_world_model("inputs", world_of(records.digest("inputs")), model)
    _, run = run_of(url, ref)
    assert datasets_of(run) == {
        EARLY_DATA: (EARLY_DATA[7:43], "cpt"),
        DATA: (DATA[7:43], "sft rl"),
    }


def test_an_agents_run_has_the_world_model_of_its_simulator_as_an_input(registry, url, model):
    world = registry.register_world_model("served", world_of(records.digest("served")), model)
    ref = registry.register_agent("linked", agent("r1"), model, world_model=world)
    version, _ = run_of(url, world)
    _, run = run_of(url, ref)
    assert [f"models:/{entry.model_id}" for entry in run.inputs.model_inputs] == [version.source]


def test_an_agent_of_an_unknown_world_model_has_no_model_input(registry, url, model):
    _, run = run_of(url, registry.register_agent("unlinked", agent("r2"), model))
    assert run.inputs.model_inputs == []


def test_a_version_is_found_by_the_data_digest_of_a_stage(registry, url, model):
    from mlflow import MlflowClient

    ref = registry.register_world_model("searched", world_of(records.digest("searched")), model)
    versions = MlflowClient(url, url).search_model_versions(
        f"name = 'searched' and tags.`agentworld.cpt.data` = '{EARLY_DATA}'"
    )
    assert [int(version.version) for version in versions] == [ref.version]


def test_a_repeated_registration_has_its_inputs_once(proxy, model):
    registry, run = MlflowRegistry(proxy.url), new_name()
    world_model, other_world_model = world_of(records.digest(run)), world_of(records.digest("o"))
    world = registry.register_world_model(f"worlds-{run}", world_model, model)
    proxy.status = lambda number: 400 * ("model-versions/create" in proxy.requests[number])
    with pytest.raises(StoreError):
        registry.register_agent(f"repeated-{run}", agent(run), model, world_model=world)
    with pytest.raises(StoreError):
        registry.register_world_model(f"others-{run}", other_world_model, model)
    proxy.status = lambda _number: 0
    ref = registry.register_agent(f"repeated-{run}", agent(run), model, world_model=world)
    other_ref = registry.register_world_model(f"others-{run}", other_world_model, model)
    assert len(run_of(proxy.url, ref)[1].inputs.model_inputs) == 1
    assert len(run_of(proxy.url, other_ref)[1].inputs.dataset_inputs) == 2


def dataset(name: str):
    """A data set with names that MLflow accepts in no metric."""
    return records.dataset().model_copy(update={"sources": {f"<b>{name}</b> \u202e": 9}})


def model_trained_on(data: str) -> WorldModel:
    stage = records.checkpoint("cpt", data=data, artifact=records.digest(f"on {data}"))
    return WorldModel(stages=(stage,), report=records.digest("report"))


def runs_with(registry: MlflowRegistry, data: str):
    client = registry._client
    (experiment,) = client.search_experiments(filter_string="name = 'agentworld'")
    return client.search_runs([experiment.experiment_id], f"dataset.name = '{data}'")


def test_one_search_finds_a_data_set_and_the_world_models_trained_on_it(registry, model):
    manifest = dataset("searched")
    run = registry.register_dataset(manifest)
    registry.register_world_model("on-data", model_trained_on(manifest.digest), model)
    runs = {entry.info.run_id: entry for entry in runs_with(registry, manifest.digest)}
    assert len(runs) == 2
    assert runs[run].data.tags["agentworld.kind"] == "data-set"
    contexts = {entry.inputs.dataset_inputs[0].tags[0].value for entry in runs.values()}
    assert contexts == {"prepared", "cpt"}


def test_a_data_sets_run_has_its_manifest_recipe_and_metrics(registry):
    manifest = dataset("told")
    run = registry._client.get_run(registry.register_dataset(manifest))
    (data_input,) = run.inputs.dataset_inputs
    assert json.loads(data_input.dataset.profile) == manifest.model_dump(mode="json")
    assert run.data.params == {"min_turns": "2"}
    assert run.data.metrics["trajectories"] == 9
    assert run.info.status == "FINISHED"
    assert [artifact.path for artifact in registry._client.list_artifacts(run.info.run_id)] == [
        "dataset.json"
    ]


def test_a_data_set_is_registered_once(registry):
    manifest = dataset("once")
    assert registry.register_dataset(manifest) == registry.register_dataset(manifest)
    assert len(runs_with(registry, manifest.digest)) == 1


def test_a_data_sets_manifest_does_not_change_the_stored_inputs(registry, model):
    manifest = dataset("audited")
    registry.register_dataset(manifest)
    model_record = model_trained_on(manifest.digest)
    entry = registry.stored(registry.register_world_model("audited", model_record, model))
    assert entry.data == data_inputs(model_record.stages)


def test_a_changed_data_set_profile_is_returned_as_extra(tmp_path, model):
    registry = MlflowRegistry(make.registry.database(tmp_path), tmp_path / "artifacts")
    manifest = dataset("changed")
    registry.register_dataset(manifest)
    ref = registry.register_world_model("changed", model_trained_on(manifest.digest), model)
    with sqlite3.connect(tmp_path / "mlflow.db") as database:
        expression = "REPLACE(dataset_profile, '\"shell\":9', '\"shell\":8')"
        database.execute(f"UPDATE datasets SET dataset_profile = {expression}")
    (data_input,) = registry.stored(ref).data
    assert '"shell":8' in data_input.extra


def test_repeating_an_interrupted_data_set_registration_makes_no_duplicate(proxy):
    registry, manifest = MlflowRegistry(proxy.url), dataset(new_name())
    proxy.status = lambda number: 400 * ("runs/log-batch" in proxy.requests[number])
    with pytest.raises(StoreError):
        registry.register_dataset(manifest)
    proxy.status = lambda _number: 0
    run = registry.register_dataset(manifest)
    assert [entry.info.run_id for entry in runs_with(registry, manifest.digest)] == [run]
    assert len(registry._client.get_metric_history(run, "trajectories")) == 1
