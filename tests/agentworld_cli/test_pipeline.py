"""Runs and schedules on a Kubeflow Pipelines server, as a person and as a machine sees them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from agentworld.records.conclusion import Conclusion
from fakes import kfp_server

pytestmark = pytest.mark.compute

GOES_ON = ("PENDING", "RUNNING")


@pytest.fixture
def server(monkeypatch) -> Iterator[kfp_server.KfpServer]:
    """The server in the environment."""
    with kfp_server.running() as server:
        monkeypatch.setenv("AGENTWORLD_KFP_URL", server.url)
        yield server


def done(found):
    assert (found.code, found.error) == (0, "")
    return found.out


def test_a_run_is_submitted_and_told_where_to_look(call, server, monkeypatch):
    monkeypatch.delenv("AGENTWORLD_KFP_URL")
    words = f"pipeline run --recipe smoke --store /store --image here/a:7 --server {server.url}/"
    out = done(call(words))
    ((run_id, run),) = server.runs.items()
    assert out == f"{run_id}\nlook at {server.url}/#/runs/details/{run_id}\n"
    assert run.runtime_config.parameters == {"recipe": "smoke", "store": "/store"}
    (version,) = server.versions.values()
    assert "image: here/a:7" in json.dumps(version.pipeline_spec).replace('"', "")
    assert done(call(words)) == out
    assert len(server.runs) == 1


def test_a_schedule_runs_where_its_placement_says(call, server, tmp_path):
    placement = tmp_path / "cluster.yaml"
    placement.write_text("image: here/a:8\ndefault: {node_selector: {pool: h100}}\n")
    words = "pipeline schedule nightly --cron '0 3 * * *' --store /store"
    done(call(f"{words} --placement {placement}"))
    (version,) = server.versions.values()
    told = json.dumps(version.pipeline_spec)
    assert '"pool": "h100"' in told
    assert '"image": "here/a:8"' in told


def test_a_schedule_trains_the_stages_that_it_names(call, server):
    words = "pipeline schedule nightly --cron '0 3 * * *' --store /store"
    done(call(f"{words} --stages sft"))
    (version,) = server.versions.values()
    components = version.pipeline_spec["pipeline_spec"]["components"]
    trained = {"comp-cpt", "comp-sft", "comp-rl"} & components.keys()
    assert trained == {"comp-sft"}


def test_another_pipeline_is_run_and_scheduled_with_what_it_takes(call, server):
    given = {"recipe": "smoke", "store": "/store", "simulator": "production"}
    words = "--recipe smoke --store /store --simulator production"
    done(call(f"pipeline run nightly {words}"))
    done(call(f"pipeline schedule weekly --pipeline nightly --cron '0 3 * * 1' {words}"))
    done(call("pipeline schedule daily --pipeline nightly --cron '0 3 * * *' --store /store"))
    assert [each.display_name for each in server.pipelines.values()] == ["nightly"]
    (run,), (weekly, daily) = server.runs.values(), server.schedules.values()
    assert run.runtime_config.parameters == weekly.runtime_config.parameters == given
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
def test_a_pipeline_that_is_not_there_or_takes_no_simulator_is_refused(
    call, server, words, sentence
):
    found = call(f"pipeline {words} --store /store")
    assert (found.code, found.out) == (2, "")
    assert sentence in found.error
    assert server.asked == []


@pytest.mark.parametrize("words", ["nightly", "--simulator production"])
def test_without_a_server_the_main_job_alone_is_run(call, words):
    found = call(f"pipeline run {words}")
    assert (found.code, found.out) == (2, "")
    told = "only world_model runs without a server, with all stages; give --server URL"
    assert told in found.error


def test_a_run_is_followed_to_its_end(call, server):
    server.course = [*GOES_ON, "SUCCEEDED"]
    found = call("pipeline run --store /store --wait --json")
    assert found.code == 0
    assert json.loads(found.out)["state"] == "SUCCEEDED"
    states = [line.split("  ")[2].split(",")[0] for line in found.error.splitlines()]
    assert states == [*GOES_ON, "SUCCEEDED"]


def test_a_run_that_fails_ends_the_command_with_its_code(call, server):
    server.course = [*GOES_ON, "FAILED"]
    found = call("pipeline run --store /store --wait")
    assert found.code == 11
    (run_id,) = server.runs
    last = found.error.splitlines()[-1]
    assert last.startswith(
        f"error: run {run_id} ended as FAILED: the server gives no reason; look at"
    )


def test_a_store_of_this_machine_is_refused_before_anything_is_asked(call, server):
    for words in ("run", "schedule nightly --cron '0 3 * * *'"):
        found = call(f"pipeline {words}")
        assert (found.code, found.out) == (2, "")
        assert "the store demo-output/demo is a folder of this machine" in found.error
    assert server.asked == []


@pytest.mark.parametrize("words", ["run", "schedule nightly --cron '0 3 * * *'"])
@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        ("my.yaml", "the recipe my.yaml is a file of this machine; name a shipped one, or the"),
        ("./a/my.yml", "the recipe ./a/my.yml is a file of this machine"),
        ("dmeo", "there is no recipe 'dmeo'; give a YAML file or one of: demo, live"),
    ],
)
def test_a_recipe_that_no_pod_has_is_refused_before_anything_is_asked(
    call, server, tmp_path, monkeypatch, words, recipe, sentence
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text("name: mine\n")
    found = call(f"pipeline {words} --store /store --recipe {recipe}")
    assert (found.code, found.out) == (2, "")
    assert sentence in found.error
    assert server.asked == []


def test_a_recipe_by_its_whole_path_is_handed_on_as_it_is(call, server):
    done(call("pipeline run --store /store --recipe /stores/recipes/my.yaml"))
    (run,) = server.runs.values()
    assert run.runtime_config.parameters["recipe"] == "/stores/recipes/my.yaml"


def test_a_schedule_is_made_once_listed_and_stopped(call, server):
    words = "pipeline schedule nightly --cron '0 3 * * *' --store /store"
    out = done(call(words))
    ((schedule_id, told),) = server.schedules.items()
    assert out.startswith(f"{schedule_id}  nightly  0 3 * * *, next 20")
    assert out.endswith("03:00:00+00:00\n")
    assert told.trigger.cron_schedule.cron == "0 0 3 * * *"
    assert done(call(words)) == out
    run = server.fire(schedule_id)
    first, second = done(call("pipeline list")).splitlines()
    assert first.startswith(out.strip())
    assert first.endswith(f"last PENDING {run.created_at}")
    assert second.startswith(f"{run.run_id}  {run.display_name}  PENDING, started ")
    gone = f"{schedule_id}  nightly  0 3 * * *, disabled"
    assert done(call("pipeline stop nightly")) == f"{gone}, last PENDING {run.created_at}\n"
    assert done(call(f"pipeline stop {run.run_id}")).count("CANCELING") == 1
    server.put(run.run_id, "CANCELED")
    assert done(call("pipeline stop nightly")) == f"{gone}\n"
    assert server.schedules == {}
    assert call("pipeline stop nightly").code == 2


def test_what_is_listed_and_stopped_is_told_as_json(call, server):
    made = json.loads(
        done(call("pipeline schedule nightly --cron '0 3 * * *' --store /store --json"))
    )
    run = server.fire(made["id"])
    listed = json.loads(done(call("pipeline list --json")))
    (schedule,), (told,) = listed["schedules"], listed["runs"]
    assert schedule == {**made, "last_run": told}
    assert (told["id"], told["finished"], told["schedule_id"]) == (run.run_id, None, made["id"])
    stopped = json.loads(done(call("pipeline stop nightly --json")))
    gone = {**made, "enabled": False, "next_run": None, "last_run": told}
    assert stopped == {"schedules": [gone], "runs": []}


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
def test_what_goes_wrong_is_one_sentence(call, server, words, code, sentence):
    found = call(f"pipeline {words}")
    assert (found.code, found.out) == (code, "")
    assert sentence in found.error
    assert found.error.count("\n") == 1
    assert server.schedules == server.runs == {}


def test_a_store_tells_how_its_runs_ended_the_newest_first(call, tmp_path):
    assert done(call(f"pipeline history --store {tmp_path}")) == ""
    well = Conclusion(
        job="a",
        pipeline="world_model",
        recipe="demo",
        state="succeeded",
        started=None,
        ended=datetime(2026, 1, 1, tzinfo=UTC),
    )
    failure = {"state": "failed", "step": "rl", "kind": "EngineError", "sentence": "gone\x1b[2J"}
    later = {"job": "b", "pipeline": "agent", "ended": datetime(2026, 1, 2, tzinfo=UTC)}
    badly = well.model_copy(update={**failure, **later})
    for each in (well, badly):
        each.write(tmp_path / f"jobs/{each.job}.json")
    assert done(call(f"pipeline history --store {tmp_path}")).splitlines() == [
        r"2026-01-02 00:00:00+00:00  b  agent of demo  failed at rl: gone\x1b[2J",
        "2026-01-01 00:00:00+00:00  a  world_model of demo  succeeded",
    ]
    told = json.loads(done(call(f"pipeline history --store {tmp_path} --json")))
    assert told == [each.model_dump(mode="json") for each in (badly, well)]


def test_a_store_that_is_not_there_has_no_history(call, tmp_path):
    found = call(f"pipeline history --store {tmp_path}/typo")
    assert (found.code, found.out) == (2, "")
    assert (
        found.error == f"error: there is no store {tmp_path}/typo; name another one with --store\n"
    )


def test_without_a_server_it_is_said_how_to_name_one(call):
    found = call("pipeline list")
    assert found.code == 2
    assert "give --server URL or set AGENTWORLD_KFP_URL" in found.error


def test_what_a_server_says_can_do_nothing_to_a_terminal(call, server):
    done(call("pipeline run --store /store"))
    (run,) = server.runs
    server.put(run, "FAILED", "\x1b[2J\n\x00")
    out = done(call("pipeline list"))
    assert "\x1b" not in out
    assert r"\x1b[2J\n\x00" in out
