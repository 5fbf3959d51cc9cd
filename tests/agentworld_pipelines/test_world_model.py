from pathlib import Path

import pytest
import yaml

from agentworld.steps import STEPS
from agentworld_pipelines.compile import compile_pipeline
from agentworld_pipelines.components import IMAGE

pytestmark = pytest.mark.slow

EDGES = {
    "collect": set(),
    "prepare": {"collect"},
    "cpt": {"prepare"},
    "sft": {"prepare", "cpt"},
    "rl": {"prepare", "sft"},
    "evaluate": {"prepare", "cpt", "sft", "rl"},
    "register": {"cpt", "sft", "rl", "evaluate"},
    "simulate": {"register"},
    "agent": {"collect", "simulate"},
    "validate": {"simulate", "agent"},
    "audit": {"agent", "validate"},
}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> dict:
    path = tmp_path_factory.mktemp("pipeline") / "world_model.yaml"
    compile_pipeline(path)
    return yaml.safe_load(path.read_text())


def tasks(pipeline: dict) -> dict:
    return pipeline["root"]["dag"]["tasks"]


def test_the_pipeline_has_the_steps_and_no_others(pipeline):
    assert set(tasks(pipeline)) == set(STEPS)


def test_a_step_waits_for_what_it_reads(pipeline):
    found = {name: set(task.get("dependentTasks", [])) for name, task in tasks(pipeline).items()}
    assert found == EDGES


def test_every_step_comes_after_what_it_waits_for():
    order = {step: place for place, step in enumerate(STEPS)}
    for step, before in EDGES.items():
        assert all(order[each] < order[step] for each in before)


def test_kubeflows_own_cache_is_off(pipeline):
    for task in tasks(pipeline).values():
        assert not task["cachingOptions"].get("enableCache", False)


def test_a_pipeline_takes_a_recipe_and_a_store(pipeline):
    assert set(pipeline["root"]["inputDefinitions"]["parameters"]) == {"recipe", "store"}


def containers(pipeline: dict) -> list[dict]:
    executors = pipeline["deploymentSpec"]["executors"].values()
    return [executor["container"] for executor in executors]


def test_a_component_is_the_projects_image_and_one_call(pipeline):
    for container in containers(pipeline):
        assert container["image"] == IMAGE
        assert "pip install" not in " ".join(container["command"])
        code = container["command"][-1]
        assert code.count("return ") == 1
        assert "from agentworld.steps." in code


def test_a_cluster_names_its_own_image(tmp_path):
    compile_pipeline(tmp_path / "made/pipeline.yaml", "registry.local/agentworld:7")
    pipeline = yaml.safe_load((tmp_path / "made/pipeline.yaml").read_text())
    assert {each["image"] for each in containers(pipeline)} == {"registry.local/agentworld:7"}
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["pipeline.yaml"]


def test_a_component_hands_its_arguments_on_in_their_order():
    import ast
    import inspect

    from agentworld_pipelines import components

    tree = ast.parse(Path(inspect.getfile(components)).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert [function.name for function in functions] == list(STEPS)
    for function in functions:
        call = function.body[-1].value
        assert [name.id for name in call.args] == [each.arg for each in function.args.args]
