"""Runs and schedules on a Kubeflow Pipelines server, printed as text and as JSON."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from agentworld.records.conclusion import Conclusion
from fakes import kfp_server

pytestmark = pytest.mark.compute

ACTIVE_STATES = ("PENDING", "RUNNING")


@pytest.fixture
def server(monkeypatch) -> Iterator[kfp_server.KfpServer]:
    """The server in the environment."""
    with kfp_server.running() as server:
        monkeypatch.setenv("AGENTWORLD_KFP_URL", server.url)
        yield server


def output_of(result):
    assert (result.code, result.error) == (0, "")
    return result.out


def test_pipeline_run_submits_a_run_once_and_prints_its_url(call, server, monkeypatch):
    monkeypatch.delenv("AGENTWORLD_KFP_URL")
    words = f"pipeline run --recipe smoke --store /store --image here/a:7 --server {server.url}/"
    out = output_of(call(words))
    ((run_id, run),) = server.runs.items()
    assert out == f"{run_id}\nlook at {server.url}/#/runs/details/{run_id}\n"
    assert run.runtime_config.parameters == {"recipe": "smoke", "store": "/store"}
    (version,) = server.versions.values()
    assert "image: here/a:7" in json.dumps(version.pipeline_spec).replace('"', "")
    assert output_of(call(words)) == out
    assert len(server.runs) == 1


def test_a_schedule_uses_the_image_and_node_selector_of_its_placement(call, server, tmp_path):
    placement = tmp_path / "cluster.yaml"
    placement.write_text("image: here/a:8\ndefault: {node_selector: {pool: h100}}\n")
    words = "pipeline schedule nightly --cron '0 3 * * *' --store /store"
    output_of(call(f"{words} --placement {placement}"))
    (version,) = server.versions.values()
    spec = json.dumps(version.pipeline_spec)
    assert '"pool": "h100"' in spec
    assert '"image": "here/a:8"' in spec


def test_a_schedule_trains_only_the_named_stages(call, server):
    words = "pipeline schedule nightly --cron '0 3 * * *' --store /store"
    output_of(call(f"{words} --stages sft"))
    (version,) = server.versions.values()
    components = version.pipeline_spec["pipeline_spec"]["components"]
    stage_components = {"comp-cpt", "comp-sft", "comp-rl"} & components.keys()
    assert stage_components == {"comp-sft"}


def test_another_pipeline_is_run_and_scheduled_with_its_own_parameters(call, server):
    parameters = {"recipe": "smoke", "store": "/store", "simulator": "production"}
    words = "--recipe smoke --store /store --simulator production"
    output_of(call(f"pipeline run nightly {words}"))
    output_of(call(f"pipeline schedule weekly --pipeline nightly --cron '0 3 * * 1' {words}"))
    output_of(call("pipeline schedule daily --pipeline nightly --cron '0 3 * * *' --store /store"))
    assert [pipeline.display_name for pipeline in server.pipelines.values()] == ["nightly"]
    (run,), (weekly, daily) = server.runs.values(), server.schedules.values()
    assert run.runtime_config.parameters == weekly.runtime_config.parameters == parameters
    assert daily.runtime_config.parameters == {"recipe": "demo", "store": "/store"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("run nigthly", "no pipeline 'nigthly'; pipelines are world_model, agent, nightly"),
        ("run --simulator production", "the pipeline world_model takes no simulator; leave it out"),
        ("schedule n --cron '0 3 * * *' --pipeline nigthly", "there is no pipeline 'nigthly'"),
        ("schedule n --cron '0 3 * * *' --simulator one", "world_model takes no simulator"),
    ],
)
def test_an_unknown_pipeline_or_an_unsupported_simulator_is_refused(call, server, words, sentence):
    result = call(f"pipeline {words} --store /store")
    assert (result.code, result.out) == (2, "")
    assert sentence in result.error
    assert server.requests == []


@pytest.mark.parametrize("words", ["nightly", "--simulator production"])
def test_pipeline_run_without_a_server_refuses_other_pipelines_and_simulators(call, words):
    result = call(f"pipeline run {words}")
    assert (result.code, result.out) == (2, "")
    message = "only world_model runs without a server, with all stages; give --server URL"
    assert message in result.error


def test_a_run_is_followed_to_its_end(call, server):
    server.course = [*ACTIVE_STATES, "SUCCEEDED"]
    result = call("pipeline run --store /store --wait --json")
    assert result.code == 0
    assert json.loads(result.out)["state"] == "SUCCEEDED"
    states = [line.split("  ")[2].split(",")[0] for line in result.error.splitlines()]
    assert states == [*ACTIVE_STATES, "SUCCEEDED"]


def test_waiting_for_a_failed_run_exits_with_the_pipeline_error_code(call, server):
    server.course = [*ACTIVE_STATES, "FAILED"]
    result = call("pipeline run --store /store --wait")
    assert result.code == 11
    (run_id,) = server.runs
    last_line = result.error.splitlines()[-1]
    assert last_line.startswith(
        f"error: run {run_id} ended as FAILED: the server gives no reason; look at"
    )


def test_a_local_store_is_refused_before_any_request(call, server):
    for words in ("run", "schedule nightly --cron '0 3 * * *'"):
        result = call(f"pipeline {words}")
        assert (result.code, result.out) == (2, "")
        assert "the store demo-output/demo is a folder of this machine" in result.error
    assert server.requests == []


@pytest.mark.parametrize("words", ["run", "schedule nightly --cron '0 3 * * *'"])
@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        ("my.yaml", "the recipe my.yaml is a file of this machine; name a shipped one, or the"),
        ("./a/my.yml", "the recipe ./a/my.yml is a file of this machine"),
        ("dmeo", "there is no recipe 'dmeo'; give a YAML file or one of: demo, live"),
    ],
)
def test_a_local_or_unknown_recipe_is_refused_before_any_request(
    call, server, tmp_path, monkeypatch, words, recipe, sentence
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text("name: mine\n")
    result = call(f"pipeline {words} --store /store --recipe {recipe}")
    assert (result.code, result.out) == (2, "")
    assert sentence in result.error
    assert server.requests == []


def test_an_absolute_recipe_path_is_passed_on_unchanged(call, server):
    output_of(call("pipeline run --store /store --recipe /stores/recipes/my.yaml"))
    (run,) = server.runs.values()
    assert run.runtime_config.parameters["recipe"] == "/stores/recipes/my.yaml"


def test_a_schedule_is_made_once_listed_and_stopped(call, server):
    words = "pipeline schedule nightly --cron '0 3 * * *' --store /store"
    out = output_of(call(words))
    ((schedule_id, schedule),) = server.schedules.items()
    assert out.startswith(f"{schedule_id}  nightly  0 3 * * *, next 20")
    assert out.endswith("03:00:00+00:00\n")
    assert schedule.trigger.cron_schedule.cron == "0 0 3 * * *"
    assert output_of(call(words)) == out
    run = server.fire(schedule_id)
    first, second = output_of(call("pipeline list")).splitlines()
    assert first.startswith(out.strip())
    assert first.endswith(f"last PENDING {run.created_at}")
    assert second.startswith(f"{run.run_id}  {run.display_name}  PENDING, started ")
    line = f"{schedule_id}  nightly  0 3 * * *, disabled"
    assert output_of(call("pipeline stop nightly")) == f"{line}, last PENDING {run.created_at}\n"
    assert output_of(call(f"pipeline stop {run.run_id}")).count("CANCELING") == 1
    server.put(run.run_id, "CANCELED")
    assert output_of(call("pipeline stop nightly")) == f"{line}\n"
    assert server.schedules == {}
    assert call("pipeline stop nightly").code == 2


def test_pipeline_list_and_stop_print_json(call, server):
    new_schedule = json.loads(
        output_of(call("pipeline schedule nightly --cron '0 3 * * *' --store /store --json"))
    )
    run = server.fire(new_schedule["id"])
    listing = json.loads(output_of(call("pipeline list --json")))
    (schedule,), (entry,) = listing["schedules"], listing["runs"]
    assert schedule == {**new_schedule, "last_run": entry}
    assert (entry["id"], entry["finished"], entry["schedule_id"]) == (
        run.run_id,
        None,
        new_schedule["id"],
    )
    stop_report = json.loads(output_of(call("pipeline stop nightly --json")))
    stopped_schedule = {**new_schedule, "enabled": False, "next_run": None, "last_run": entry}
    assert stop_report == {"schedules": [stopped_schedule], "runs": []}


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("schedule nightly --cron '0 0 3 * * *' --store /s", 2, "has 6 fields; give five"),
        (
            "schedule Nightly --cron '0 3 * * *' --store /s",
            2,
            "'Nightly' is not the name of a schedule",
        ),
        ("stop gone", 2, "Run gone not found"),
        ("list --server host:80", 2, "host:80 is not a server's address"),
        ("list --server http://127.0.0.1:1", 11, "http://127.0.0.1:1 cannot be reached"),
    ],
)
def test_failed_pipeline_commands_print_one_sentence(call, server, words, code, sentence):
    result = call(f"pipeline {words}")
    assert (result.code, result.out) == (code, "")
    assert sentence in result.error
    assert result.error.count("\n") == 1
    assert server.schedules == server.runs == {}


def test_pipeline_history_lists_ended_runs_newest_first(call, tmp_path):
    assert output_of(call(f"pipeline history --store {tmp_path}")) == ""
    success = Conclusion(
        job="a",
        pipeline="world_model",
        recipe="demo",
        state="succeeded",
        started=None,
        ended=datetime(2026, 1, 1, tzinfo=UTC),
    )
    failed_fields = {
        "state": "failed",
        "step": "rl",
        "kind": "EngineError",
        "sentence": "gone\x1b[2J",
    }
    later_fields = {"job": "b", "pipeline": "agent", "ended": datetime(2026, 1, 2, tzinfo=UTC)}
    failure = success.model_copy(update={**failed_fields, **later_fields})
    for conclusion in (success, failure):
        conclusion.write(tmp_path / f"jobs/{conclusion.job}.json")
    assert output_of(call(f"pipeline history --store {tmp_path}")).splitlines() == [
        r"2026-01-02 00:00:00+00:00  b  agent of demo  failed at rl: gone\x1b[2J",
        "2026-01-01 00:00:00+00:00  a  world_model of demo  succeeded",
    ]
    history = json.loads(output_of(call(f"pipeline history --store {tmp_path} --json")))
    assert history == [conclusion.model_dump(mode="json") for conclusion in (failure, success)]


def test_the_history_of_a_missing_store_is_refused(call, tmp_path):
    result = call(f"pipeline history --store {tmp_path}/typo")
    assert (result.code, result.out) == (2, "")
    assert (
        result.error == f"error: there is no store {tmp_path}/typo; name another one with --store\n"
    )


def test_pipeline_list_without_a_server_explains_how_to_set_one(call):
    result = call("pipeline list")
    assert result.code == 2
    assert "give --server URL or set AGENTWORLD_KFP_URL" in result.error


def test_control_characters_in_server_messages_are_escaped(call, server):
    output_of(call("pipeline run --store /store"))
    (run,) = server.runs
    server.put(run, "FAILED", "\x1b[2J\n\x00")
    out = output_of(call("pipeline list"))
    assert "\x1b" not in out
    assert r"\x1b[2J\n\x00" in out
