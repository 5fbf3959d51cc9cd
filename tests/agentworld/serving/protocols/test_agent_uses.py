"""How an operator says which agent is in use, over HTTP."""

import asyncio

import httpx
import pytest
from starlette.testclient import TestClient

import make.access
import make.agent
import make.service
from agentworld.client.operator import OperatorClient
from agentworld.errors import SimulatorError

PATH = "/agent-uses/shell-agent/production"


@pytest.fixture
def made(tmp_path):
    return make.agent.registered(tmp_path)


def app(made, **access):
    return make.service.service(made.store, pinned=made.simulator.manifest, **access).app


@pytest.fixture
def asked(made):
    return TestClient(app(made), base_url="http://localhost")


def body(made, **fields):
    return made.move(**fields).model_dump(mode="json")


def test_an_agent_is_put_to_use_and_taken_out_of_it(made, asked):
    used = asked.put(PATH, json=body(made, reason="the first"))
    assert used.status_code == 200, used.text
    assert asked.put(PATH, json=body(made)).json() == used.json()
    assert (used.json()["simulator"], used.json()["reason"]) == (
        made.simulator.digest,
        "the first",
    )
    ended = asked.delete(PATH, params={"by": "bob", "reason": "an outage"})
    assert asked.delete(PATH, params={"by": "bob"}).json() == ended.json()
    assert (ended.json()["number"], ended.json()["ended"]) == (2, True)
    assert len(made.ledger.attestations.find("agent-use")) == 2


def test_what_no_simulator_signed_for_or_was_never_in_use_is_not_there(made, asked):
    unknown = asked.put(PATH, json=body(made, run="nobody's"))
    assert (unknown.status_code, unknown.json()["error"]["kind"]) == (404, "not-found")
    assert asked.delete(PATH, params={"by": "bob"}).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/agent-uses/shell-agent/latest",
        "/agent-uses/shell-agent/v1",
        "/agent-uses/shell-agent/Production",
        "/agent-uses/-agent/production",
        "/agent-uses/a'b/production",
    ],
)
def test_what_a_registry_or_a_mirror_would_not_take_is_refused(made, asked, path):
    assert asked.put(path, json=body(made)).status_code == 422
    assert asked.delete(path, params={"by": "bob"}).status_code == 422


@pytest.mark.parametrize(
    ("who", "status"), [("acme-agent", 403), ("office-auditor", 403), ("acme-operator", 200)]
)
def test_agents_are_put_to_use_by_operators_alone(made, tmp_path, who, status):
    asked = TestClient(app(made, access=make.access.Checked(tmp_path)), base_url="http://localhost")
    headers = {"Authorization": make.access.bearer(who)}
    assert asked.put(PATH, json=body(made), headers=headers).status_code == status
    ended = asked.delete(PATH, params={"by": "bob"}, headers=headers)
    assert ended.status_code == status


def test_the_client_of_an_operator_does_the_same(made):
    async def work():
        transport = httpx.ASGITransport(app(made))
        client = OperatorClient("http://simulator", transport=transport)
        used = await client.start_agent_use("shell-agent", "production", made.move())
        ended = await client.end_agent_use("shell-agent", "production", "bob & co", "odd/&?")
        with pytest.raises(SimulatorError, match="was ever in use as 'trial'"):
            await client.end_agent_use("shell-agent", "trial", "bob")
        await client.close()
        return used, ended

    used, ended = asyncio.run(work())
    assert (used.agent, used.ended) == ("shell-agent@1", False)
    assert (ended.by, ended.reason, ended.ended) == ("bob & co", "odd/&?", True)
