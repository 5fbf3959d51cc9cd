"""The tests' Kubeflow Pipelines server refuses what our own code does not try."""

from collections.abc import Iterator

import httpx
import pytest

import kfp_server

pytestmark = pytest.mark.slow

SPEC = b"""
pipelineInfo: {name: one}
root:
  dag: {tasks: {one: {taskInfo: {name: one}}}}
  inputDefinitions: {parameters: {store: {parameterType: STRING}}}
"""


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with (
        kfp_server.running() as server,
        httpx.Client(base_url=f"{server.url}/apis/v2beta1", trust_env=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def body(client) -> dict:
    """Of a recurring run that is taken."""
    experiment = client.post("/experiments", json={"display_name": "one"}).json()
    pipeline = client.post("/pipelines", json={"name": "one", "display_name": "one"}).json()
    query = {"name": "one", "pipelineid": pipeline["pipeline_id"]}
    version = client.post("/pipelines/upload_version", params=query, files={"uploadfile": SPEC})
    reference = {name: version.json()[name] for name in ("pipeline_id", "pipeline_version_id")}
    return {
        "display_name": "nightly",
        "experiment_id": experiment["experiment_id"],
        "pipeline_version_reference": reference,
        "runtime_config": {"parameters": {"store": "/store"}},
        "max_concurrency": "1",
        "mode": "ENABLE",
        "trigger": {"cron_schedule": {"cron": "0 0 3 * * *"}},
    }


def test_a_recurring_run_is_taken(client, body):
    made = client.post("/recurringruns", json=body).json()
    told = client.get("/recurringruns", params={"experiment_id": body["experiment_id"]}).json()
    assert made in told["recurringRuns"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"max_concurrency": "0"}, 400),
        ({"max_concurrency": "11"}, 400),
        ({"mode": None}, 400),
        ({"cron": "0 0 3 * * *"}, 400),
        ({"trigger": {"cron_schedule": {"cron": "0 3 * *"}}}, 400),
        ({"trigger": {"cron_schedule": {"cron": "0 0 24 * * *"}}}, 400),
        ({"trigger": {"cron_schedule": {"cron": "0 0 3 * * *", "zone": "UTC"}}}, 400),
        ({"runtime_config": {}}, 400),
        ({"experiment_id": "gone"}, 404),
        ({"pipeline_version_reference": {"pipeline_id": "x", "pipeline_version_id": "x"}}, 404),
    ],
    ids=str,
)
def test_a_recurring_run_that_is_wrong_is_refused(client, body, change, status):
    refused = client.post("/recurringruns", json=body | change)
    assert refused.status_code == status
    assert set(refused.json()) == {"error", "code", "message", "details"}


def test_a_name_is_given_once(client, body):
    assert client.post("/experiments", json={"display_name": "one"}).status_code == 409
    assert client.post("/pipelines", json={"name": "one"}).json()["code"] == 6
    query = {"name": "one", "pipelineid": body["pipeline_version_reference"]["pipeline_id"]}
    again = client.post("/pipelines/upload_version", params=query, files={"uploadfile": SPEC})
    assert again.status_code == 409


def test_a_run_that_has_ended_or_is_ending_is_not_terminated(client, body):
    fields = ("display_name", "experiment_id", "pipeline_version_reference", "runtime_config")
    run = client.post("/runs", json={name: body[name] for name in fields}).json()["run_id"]
    ended = [client.post(f"/runs/{run}:terminate").status_code for _ in range(2)]
    assert ended == [200, 400]
    assert client.post("/runs/gone:terminate").status_code == 404
