"""Recurring runs of one namespace among those of other namespaces."""

from copy import copy

import pytest

from agentworld.cluster.records.schedule import ScheduleSpec
from agentworld.errors import InputError, NotFound
from agentworld_operator.recurring_runs import RecurringRuns
from agentworld_pipelines.settings import ServerSettings
from fakes import kfp_server
from make.simulator import schedule

pytestmark = pytest.mark.waits


@pytest.fixture
def server():
    with kfp_server.running() as server:
        yield server


def recurring_runs(server, namespace="worlds", placement=None, image=""):
    return RecurringRuns(namespace, ServerSettings(url=server.url), placement, image)


def spec(**fields):
    return ScheduleSpec.model_validate(schedule(**fields)["spec"])


def test_ensuring_an_unchanged_recurring_run_only_reads(server):
    runs = recurring_runs(server)
    recurring_run = runs.ensure("nightly", spec(), [])
    num_requests = len(server.requests)
    assert runs.ensure("nightly", spec(), runs.all()["nightly"]).id == recurring_run.id
    assert {request.split()[0] for request in server.requests[num_requests:]} == {"GET"}
    assert len(server.requests) - num_requests == 4


def test_a_second_operator_keeps_the_recurring_run(server):
    recurring_run = recurring_runs(server).ensure("nightly", spec(), [])
    second = recurring_runs(server)
    assert second.ensure("nightly", spec(), second.all()["nightly"]).id == recurring_run.id
    assert len(server.versions) == 1


def test_recurring_runs_of_other_namespaces_and_of_people_are_ignored(server):
    own_runs, other_runs = recurring_runs(server), recurring_runs(server, "worlds-2")
    own_runs.ensure("a.b", spec(), [])
    other_runs.ensure("nightly", spec(), [])
    recurring_run = next(iter(server.schedules.values()))
    server.schedules["by-hand"] = copy(recurring_run)
    server.schedules["by-hand"].display_name = "nightly"
    assert {name: len(runs) for name, runs in own_runs.all().items()} == {"a.b": 1}
    own_runs.remove("a.b")
    own_runs.remove("nightly")
    assert sorted(recurring_run.display_name for recurring_run in server.schedules.values()) == [
        "nightly",
        "worlds-2.nightly",
    ]


def test_steps_run_in_the_configured_image(server):
    recurring_runs(server, image="mirror.example/train:1").ensure("nightly", spec(), [])
    (version,) = server.versions.values()
    executors = version.pipeline_spec["pipeline_spec"]["deploymentSpec"]["executors"].values()
    assert {executor["container"]["image"] for executor in executors} == {"mirror.example/train:1"}


def test_steps_follow_the_placement_and_use_the_schedules_queue_by_default(server, tmp_path):
    placement = tmp_path / "placement.yaml"
    placement.write_text("default: {volumes: {stores: /stores}}\nsteps: {rl: {queue: h100}}\n")
    recurring_runs(server, placement=placement).ensure("nightly", spec(queue="training"), [])
    (version,) = server.versions.values()
    platform = version.pipeline_spec["platform_spec"]["platforms"]["kubernetes"]
    executors = platform["deploymentSpec"]["executors"]
    mounts = {name: executor["pvcMount"][0]["mountPath"] for name, executor in executors.items()}
    assert set(mounts.values()) == {"/stores"}
    queues = {
        name: executor["podMetadata"]["labels"].popitem()[1] for name, executor in executors.items()
    }
    assert queues == {name: "h100" if name == "exec-rl" else "training" for name in executors}


def test_an_invalid_placement_is_refused_with_its_wrong_key(server, tmp_path):
    placement = tmp_path / "placement.yaml"
    placement.write_text("default: {node_selectr: {pool: h100}}\n")
    with pytest.raises(InputError, match=r"placement\.yaml.*node_selectr"):
        recurring_runs(server, placement=placement).ensure("nightly", spec(), [])
    assert server.schedules == {}


def test_an_unknown_pipeline_is_refused_with_the_known_pipelines(server):
    with pytest.raises(InputError, match="no pipeline 'wrold'; pipelines are world_model"):
        recurring_runs(server).ensure("nightly", spec(pipeline="wrold"), [])


def test_a_pipeline_gets_the_simulator_of_its_schedule(server):
    recurring_runs(server).ensure("nightly", spec(pipeline="nightly", simulator="production"), [])
    recurring_runs(server).ensure("recipes-own", spec(pipeline="nightly"), [])
    parameters = [
        recurring_run.runtime_config.parameters for recurring_run in server.schedules.values()
    ]
    assert parameters == [
        {"recipe": "demo", "store": "/store", "simulator": "production"},
        {"recipe": "demo", "store": "/store"},
    ]


def test_a_simulator_for_a_pipeline_that_takes_none_is_refused_without_a_request(server):
    with pytest.raises(InputError, match="world_model takes no simulator; leave it out"):
        recurring_runs(server).ensure("nightly", spec(simulator="production"), [])
    assert server.requests == []


def test_a_server_that_lost_its_data_gets_the_recurring_run_again(server):
    runs = recurring_runs(server)
    runs.ensure("nightly", spec(), [])
    for table in (server.experiments, server.pipelines, server.versions, server.schedules):
        table.clear()
    with pytest.raises(NotFound):
        runs.ensure("nightly", spec(), [])
    runs.ensure("nightly", spec(), [])
    assert len(server.enabled("worlds.nightly")) == len(server.versions) == 1


def test_a_missing_run_is_none(server):
    assert recurring_runs(server).run("gone") is None
