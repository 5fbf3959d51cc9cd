"""Every pipeline, compiled for a cluster."""

import ast
import inspect
import re

import pytest
from kfp import dsl

import make.pipelines
from agentworld.errors import InputError
from agentworld.steps.table import STEPS
from agentworld_pipelines.compile import PIPELINES, arguments_for, compile_pipeline
from agentworld_pipelines.components import COMPONENTS, IMAGE
from agentworld_pipelines.placement import Place, Placement
from make.pipelines import PLACEMENT

pytestmark = pytest.mark.compute

CLUSTER = Placement(image="mirror.example/agentworld:7")


@pytest.mark.parametrize("name", PIPELINES)
def test_kubeflow_shows_a_pipeline_under_its_name(name):
    assert make.pipelines.compiled(name).spec["pipelineInfo"]["name"] == name.replace("_", "-")


@pytest.mark.parametrize("name", PIPELINES)
def test_without_a_placement_a_pod_sets_only_its_security_context(name):
    compiled = make.pipelines.compiled(name)
    for step in compiled.containers:
        assert compiled.pod(step).keys() == {"securityContext"}
    assert {container["image"] for container in compiled.containers.values()} == {IMAGE}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_component_makes_one_call_in_the_projects_image(name):
    for container in make.pipelines.compiled(name).containers.values():
        assert set(container) == {"args", "command", "image"}
        assert "pip install" not in " ".join(container["command"])
        code = container["command"][-1]
        assert code.count("return ") == 1
        assert re.search(r"from agentworld(\.steps|_pipelines)\.\w+ import", code)


@pytest.mark.parametrize("name", PIPELINES)
def test_kubeflows_own_cache_is_off(name):
    compiled = make.pipelines.compiled(name)
    for step in compiled.containers:
        assert not compiled.tasks[step]["cachingOptions"].get("enableCache", False)


@pytest.mark.parametrize(
    ("placement", "image", "expected"),
    [
        (None, "mine:2", "mine:2"),
        (CLUSTER, None, "mirror.example/agentworld:7"),
        (CLUSTER, "mine:2", "mine:2"),
    ],
)
def test_a_requested_image_has_priority_over_the_placements_image(placement, image, expected):
    containers = make.pipelines.compiled("agent", placement, image).containers
    assert {container["image"] for container in containers.values()} == {expected}


def test_another_image_changes_no_other_field_of_a_steps_place():
    compiled = make.pipelines.compiled("agent", PLACEMENT, "mine:2")
    place = PLACEMENT.of("agent").own_pod
    assert compiled.place("agent") == place.model_copy(update={"image": "mine:2"})


def test_a_steps_own_image_has_priority_over_any_other():
    placement = CLUSTER.model_copy(update={"steps": {"audit": Place(image="own:1")}})
    containers = make.pipelines.compiled("agent", placement, "mine:2").containers
    assert containers["audit"]["image"] == "own:1"
    assert containers["validate"]["image"] == "mine:2"


def test_compiling_writes_no_file_beside_the_pipeline(tmp_path):
    compile_pipeline(tmp_path / "made/agent.yaml", "agent")
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["agent.yaml"]


def test_the_error_for_an_unknown_pipeline_lists_the_known_pipelines(tmp_path):
    with pytest.raises(InputError, match="no pipeline 'agnet'; pipelines are world_model, agent, "):
        compile_pipeline(tmp_path / "pipeline.yaml", "agnet")


def test_the_agent_pipeline_takes_an_optional_simulator():
    compiled = make.pipelines.compiled("agent")
    parameters = compiled.spec["root"]["inputDefinitions"]["parameters"]
    assert set(parameters) == {"recipe", "store", "simulator"}
    assert parameters["simulator"]["defaultValue"] == ""


def test_the_nightly_pipeline_passes_its_run_id_to_the_step_measure():
    compiled = make.pipelines.compiled("nightly")
    parameters = compiled.spec["root"]["inputDefinitions"]["parameters"]
    assert parameters["simulator"] == {
        "defaultValue": "",
        "isOptional": True,
        "parameterType": "STRING",
    }
    task = compiled.tasks["measure"]
    job = task["inputs"]["parameters"]["job"]["runtimeValue"]["constant"]
    assert job == dsl.PIPELINE_JOB_ID_PLACEHOLDER


def test_arguments_of_a_run_omit_empty_values_and_invalid_arguments_are_refused():
    arguments = {"recipe": "demo", "store": "/store", "simulator": ""}
    for name in PIPELINES:
        assert arguments_for(name, arguments) == {"recipe": "demo", "store": "/store"}
    nightly = arguments | {"simulator": "production"}
    assert arguments_for("nightly", nightly) == nightly
    with pytest.raises(InputError, match="the pipeline world_model takes no simulator"):
        arguments_for("world_model", nightly)
    with pytest.raises(InputError, match="no pipeline 'agnet'; pipelines are world_model, agent, "):
        arguments_for("agnet", arguments)
    bucket = {"recipe": "s3://worlds/demo/mine.yaml", "store": "s3://worlds/demo", "simulator": ""}
    assert arguments_for("agent", bucket)["store"] == "s3://worlds/demo"
    with pytest.raises(InputError, match="mine.yaml is not in the store /store; put it there"):
        arguments_for("agent", bucket | {"store": "/store"})
    with pytest.raises(InputError, match="there is no recipe 'dmeo'"):
        arguments_for("agent", arguments | {"recipe": "dmeo"})


@pytest.mark.parametrize("recipe", ["qwen3-0.6b", "qwen3-8b"])
def test_pods_find_a_shipped_recipe_of_a_pretrained_model(recipe):
    arguments = {"recipe": recipe, "store": "/store"}
    assert arguments_for("world_model", arguments) == arguments


@pytest.mark.parametrize("name", STEPS)
def test_a_component_passes_on_the_arguments_that_its_step_declares(name):
    [function] = ast.parse(inspect.getsource(COMPONENTS[name].python_func)).body
    assert isinstance(function, ast.FunctionDef)
    calls = [node for node in ast.walk(function.body[-1]) if isinstance(node, ast.Call)]
    [call] = [node for node in calls if ast.unparse(node.func) == "call_with_retries"]
    values = [ast.unparse(node) for node in (*call.args, *(word.value for word in call.keywords))]
    inputs = [word.lower() for word in STEPS[name].usage.split()]
    place = [] if STEPS[name].kind == "plain" else ["place"]
    step_name = [] if name == "gate" else [repr(name)]
    assert values[1:] == [*step_name, *inputs, *place]
    assert [argument.arg for argument in function.args.args] == [*inputs, *place]
