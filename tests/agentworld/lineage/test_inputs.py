"""What MLflow's own pages tell of where a version came from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentworld.engine.process import LOOPBACK
from agentworld.errors import StoreError
from agentworld.lineage.base import Agent
from agentworld.lineage.mlflow import MlflowRegistry
from machines.mlflow_server import door, serving
from make import records
from make.story import DATA, EARLY_DATA, world_of

pytestmark = pytest.mark.waits


@pytest.fixture(scope="module", params=["database", "server"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mlflow")
    if request.param == "database":
        yield f"sqlite:///{folder}/mlflow.db"
    else:
        with serving(folder) as server:
            yield f"http://{LOOPBACK}:{server.port}"


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
    made = records.checkpoint(
        "agent", artifact=records.digest("agent"), simulator=records.digest("s")
    )
    return Agent(checkpoint=made, run=run)


def told(run) -> dict[str, tuple[str, str]]:
    """Of each data set its digest and its readers."""
    inputs = run.inputs.dataset_inputs
    return {each.dataset.name: (each.dataset.digest, each.tags[0].value) for each in inputs}


def test_a_world_models_run_has_its_data_as_inputs_with_the_stages_that_read_it(
    registry, url, model
):
    ref = registry.register_world_model("inputs", world_of(records.digest("inputs")), model)
    _, run = run_of(url, ref)
    assert told(run) == {
        EARLY_DATA: (EARLY_DATA[7:43], "cpt"),
        DATA: (DATA[7:43], "sft rl"),
    }


def test_an_agents_run_has_the_world_model_of_its_simulator_as_an_input(registry, url, model):
    world = registry.register_world_model("served", world_of(records.digest("served")), model)
    ref = registry.register_agent("linked", agent("r1"), model, world_model=world)
    version, _ = run_of(url, world)
    _, run = run_of(url, ref)
    assert [f"models:/{each.model_id}" for each in run.inputs.model_inputs] == [version.source]


def test_an_agent_of_an_unknown_world_model_has_none(registry, url, model):
    _, run = run_of(url, registry.register_agent("unlinked", agent("r2"), model))
    assert run.inputs.model_inputs == []


def test_every_stages_data_is_found_by_one_search(registry, url, model):
    from mlflow import MlflowClient

    ref = registry.register_world_model("searched", world_of(records.digest("searched")), model)
    found = MlflowClient(url, url).search_model_versions(
        f"name = 'searched' and tags.`agentworld.cpt.data` = '{EARLY_DATA}'"
    )
    assert [int(each.version) for each in found] == [ref.version]


def test_an_attempt_that_is_repeated_has_its_inputs_once(tmp_path, model):
    (tmp_path / "mlflow").mkdir()
    with serving(tmp_path / "mlflow") as server, door(server.port) as before:
        registry, what = MlflowRegistry(before.url), agent("r3")
        world = registry.register_world_model("worlds", world_of(records.digest("w")), model)
        before.status = lambda number: 400 * ("model-versions/create" in before.asked[number])
        with pytest.raises(StoreError):
            registry.register_agent("repeated", what, model, world_model=world)
        with pytest.raises(StoreError):
            registry.register_world_model("others", world_of(records.digest("o")), model)
        before.status = lambda _number: 0
        ref = registry.register_agent("repeated", what, model, world_model=world)
        other = registry.register_world_model("others", world_of(records.digest("o")), model)
        assert len(run_of(before.url, ref)[1].inputs.model_inputs) == 1
        assert len(run_of(before.url, other)[1].inputs.dataset_inputs) == 2
