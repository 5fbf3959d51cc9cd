"""Moves of simulators' aliases, and uses of agents, over HTTP by operators."""

import asyncio

import httpx
import pytest
from starlette.testclient import TestClient

import make.access
import make.agent
import make.service
from agentworld.client.operator import OperatorClient
from agentworld.errors import SimulatorError
from agentworld.records.run import RunClosing
from agentworld.storage.objects import ObjectStore, WriteOnce
from make import records

SIMULATOR, NEXT = make.service.SIMULATOR, records.digest("next")
KEY = {"Idempotency-Key": "11111111-2222"}


@pytest.fixture
def served(tmp_path):
    return make.service.service(tmp_path)


@pytest.fixture
def asked(served):
    return TestClient(served.app, base_url="http://localhost")


def keep(served, report):
    return ObjectStore(str(served.store / "objects")).put(report.canonical)


def move(asked, alias="stable", params=None, headers=KEY, **fields):
    told = {"kind": "simulator", "simulator": SIMULATOR, "by": "ada", **fields}
    return asked.put(f"/aliases/{alias}", json=told, params=params, headers=headers)


def gate(least, metric="live_gain"):
    return [{"metric": metric, "least": least}]


def test_a_report_that_passes_the_gate_moves_an_alias(served, asked):
    report = keep(served, records.agent_report())
    answer = move(asked, gate=gate(0.3), report=report)
    assert answer.status_code == 200, answer.text
    (change,) = asked.get("/aliases/stable").json()
    assert change == answer.json()
    assert change["gate"] == [{"metric": "live_gain", "least": 0.3, "value": 0.4}]
    assert (change["set_by"], change["report"], change["override"]) == ("ada", report, None)


def test_an_evaluation_of_the_weights_counts_only_for_the_served_simulator(served, asked):
    artifact = records.manifest().artifact
    report = keep(served, records.world_report(artifacts={"rl": artifact}))
    assert move(asked, gate=gate(0.8, "exact_match"), report=report).status_code == 200
    assert move(asked, simulator=NEXT, report=report).status_code == 409


def test_a_failed_gate_refuses_the_move_with_the_reason(served, asked):
    report = keep(served, records.agent_report())
    answer = move(asked, gate=gate(0.5), report=report)
    assert answer.status_code == 409
    said = answer.json()["error"]["message"]
    assert said.startswith("live_gain is 0.4 in the report")
    assert asked.get("/aliases").json() == []


def test_an_override_is_recorded_with_the_failed_gate_result(served, asked):
    report = keep(served, records.agent_report())
    assert move(asked, gate=gate(0.5), report=report, override="an outage").status_code == 200
    (change,) = asked.get("/aliases/stable").json()
    assert change["override"] == "an outage"
    assert change["gate"][0]["value"] == 0.4


def test_an_unneeded_override_is_not_recorded(served, asked):
    report = keep(served, records.agent_report())
    move(asked, gate=gate(0.1), report=report, override="an outage")
    assert asked.get("/aliases/stable").json()[0]["override"] is None


def test_a_report_missing_from_the_object_store_is_refused(asked):
    answer = move(asked, gate=gate(0.1), report=records.digest("lost"))
    assert answer.status_code == 409
    assert "is not in the object store" in answer.json()["error"]["message"]


def test_an_object_that_is_not_a_report_is_refused(served, asked):
    text = ObjectStore(str(served.store / "objects")).put(b"{}")
    answer = move(asked, report=text)
    assert (answer.status_code, "this is no report" in answer.text) == (409, True)


def test_a_repeated_move_is_recorded_once(asked):
    assert move(asked).json() == move(asked).json()
    move(asked, headers={"Idempotency-Key": "another"})
    assert len(asked.get("/aliases/stable").json()) == 2


def test_the_move_and_the_end_of_an_alias_are_signed_and_mirrored(served, asked):
    assert move(asked).status_code == 200
    move(asked)
    asked.delete("/aliases/stable", params={"by": "bob"}, headers={"Idempotency-Key": "end"})
    kept = served.ledger.attestations.find("alias", subject="stable")
    copies = WriteOnce(str(served.store / "mirror"))
    assert len(kept) == 2
    assert copies.names("alias-changes/simulator/stable/") == sorted(each.name for each in kept)


def test_an_alias_change_names_the_custom_resource_that_requested_the_change(asked):
    move(asked, request="an-object/3")
    params = {"by": "bob", "request": "an-object/4"}
    asked.delete("/aliases/stable", params=params, headers={"Idempotency-Key": "end"})
    told = [each["request"] for each in asked.get("/aliases/stable").json()]
    assert told == ["an-object/3", "an-object/4"]
    assert move(asked, request="no request").status_code == 422


def test_a_dry_run_checks_the_gate_and_records_nothing(asked):
    assert move(asked, params={"dry_run": True}).status_code == 200
    assert move(asked, params={"dry_run": True}, gate=gate(0.1)).status_code == 409
    assert asked.get("/aliases").json() == []


@pytest.mark.compute
def test_a_repeated_deletion_ends_an_alias_once(asked):
    move(asked)
    ended = {"params": {"by": "bob"}, "headers": {"Idempotency-Key": "end"}}
    dry = asked.delete("/aliases/stable", params={"by": "bob", "dry_run": True}, headers=KEY)
    assert (dry.status_code, len(asked.get("/aliases/stable").json())) == (200, 1)
    assert asked.delete("/aliases/stable", **ended).json()["ended"]
    assert asked.delete("/aliases/stable", **ended).status_code == 200
    assert [each["ended"] for each in asked.get("/aliases/stable").json()] == [False, True]
    assert asked.delete("/aliases/nobody", **ended).status_code == 404


def test_an_alias_resolves_only_to_the_served_simulator(asked):
    move(asked, "old", simulator=records.digest("old"))
    move(asked)
    assert asked.get("/aliases/stable/simulator").json() == SIMULATOR
    refused = asked.get("/aliases/old/simulator")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (409, "conflict")


@pytest.mark.compute
def test_open_runs_and_episodes_of_a_simulator_are_counted(asked):
    def use():
        told = asked.get(f"/simulators/{SIMULATOR}/use").json()
        return {name: told[name] for name in ("open_runs", "open_episodes")}

    assert use() == {"open_runs": 0, "open_episodes": 0}
    run = asked.post("/runs", json=make.service.OPENING.model_dump(mode="json")).json()["run"]["id"]
    asked.post("/episodes", json={"run": run})
    assert use() == {"open_runs": 1, "open_episodes": 1}
    closing = RunClosing(final_weights=records.digest("final")).model_dump(mode="json")
    assert asked.post(f"/runs/{run}/close", json=closing).status_code == 200
    assert use() == {"open_runs": 0, "open_episodes": 0}


@pytest.mark.compute
def test_the_use_of_a_simulator_lists_its_current_and_canary_aliases(asked):
    def aliases(simulator):
        return asked.get(f"/simulators/{simulator}/use").json()["aliases"]

    def put(alias, key, **fields):
        move(asked, alias, headers={"Idempotency-Key": key}, **fields)

    put("b", "1")
    put("a", "2", canary={"simulator": NEXT, "percent": 5})
    put("c", "3", simulator=NEXT)
    assert (aliases(SIMULATOR), aliases(NEXT)) == (["a", "b"], ["a", "c"])
    put("b", "4", simulator=NEXT)
    asked.delete("/aliases/c", params={"by": "bob"}, headers={"Idempotency-Key": "5"})
    assert (aliases(SIMULATOR), aliases(NEXT)) == (["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("who", "method", "path", "status"),
    [
        ("acme-agent", "PUT", "/aliases/stable", 403),
        ("office-auditor", "PUT", "/aliases/stable", 403),
        ("acme-operator", "PUT", "/aliases/stable", 200),
        ("office-auditor", "DELETE", "/aliases/stable?by=me", 403),
        ("acme-agent", "GET", "/aliases", 403),
        ("office-auditor", "GET", "/aliases", 200),
        ("acme-operator", "GET", f"/simulators/{SIMULATOR}/use", 200),
        ("office-auditor", "GET", f"/simulators/{SIMULATOR}/use", 403),
    ],
)
def test_alias_requests_are_allowed_by_role(tmp_path, who, method, path, status):
    served = make.service.service(tmp_path, access=make.access.Checked(tmp_path))
    asked = TestClient(served.app, base_url="http://localhost")
    headers = {"Authorization": make.access.bearer(who), **KEY}
    body = {"kind": "simulator", "simulator": SIMULATOR, "by": "ada"} if method == "PUT" else None
    assert asked.request(method, path, json=body, headers=headers).status_code == status


AGENT = "/aliases/shell-agent@production"


@pytest.fixture
def made(tmp_path):
    return make.agent.registered(tmp_path)


def client(made, **access):
    served = make.service.service(made.store, pinned=made.simulator.manifest, **access)
    return TestClient(served.app, base_url="http://localhost", headers=KEY)


def body(made, **fields):
    return made.move(**fields).model_dump(mode="json")


@pytest.mark.compute
def test_an_agent_alias_is_set_and_ended(made):
    asked, again = client(made), {"Idempotency-Key": "again"}
    used = asked.put(AGENT, json=body(made, reason="the first"))
    assert used.status_code == 200, used.text
    assert asked.put(AGENT, json=body(made), headers=again).json() == used.json()
    assert (used.json()["simulator"], used.json()["reason"]) == (made.simulator.digest, "the first")
    end = {"Idempotency-Key": "end"}
    ended = asked.delete(AGENT, params={"by": "bob", "reason": "an outage"}, headers=end)
    assert asked.delete(AGENT, params={"by": "bob"}).json() == ended.json()
    assert (ended.json()["reason"], ended.json()["ended"]) == ("an outage", True)
    assert asked.get(AGENT).json() == [used.json(), ended.json()]
    assert asked.get("/aliases").json() == []
    assert asked.get("/aliases?kind=agent").json() == asked.get(AGENT).json()


def test_an_unattested_agent_or_an_unset_agent_alias_is_not_found(made):
    asked = client(made)
    unknown = asked.put(AGENT, json=body(made, agent=made.version(run="nobody's")))
    assert (unknown.status_code, unknown.json()["error"]["kind"]) == (404, "not-found")
    assert asked.delete(AGENT, params={"by": "bob"}).status_code == 404
    assert asked.put(AGENT, json=body(made)).status_code == 200
    assert asked.get(f"{AGENT}/simulator").status_code == 404


@pytest.mark.parametrize("alias", ["a@latest", "a@v1", "a@Production", "-a@b", "a'b@c", "a@b@c"])
def test_an_invalid_agent_alias_is_refused(made, alias):
    asked = client(made)
    assert asked.put(f"/aliases/{alias}", json=body(made)).status_code == 422
    ended = asked.delete(f"/aliases/{alias}", params={"by": "bob"})
    assert ended.status_code == (404 if alias in ("a@latest", "a@v1") else 422)


def test_an_alias_of_one_kind_refuses_a_move_of_the_other_kind(made):
    asked = client(made)
    assert asked.put("/aliases/stable", json=body(made)).status_code == 422
    assert move(asked, "shell-agent@production").status_code == 422


@pytest.mark.compute
@pytest.mark.parametrize(
    ("who", "statuses"),
    [
        ("acme-agent", [403, 403, 403, 403]),
        ("office-auditor", [403, 403, 200, 200]),
        ("acme-operator", [200, 200, 403, 403]),
    ],
)
def test_operators_set_agent_aliases_and_auditors_read_their_histories(
    made, tmp_path, who, statuses
):
    """An agent's run may be another tenant's."""
    made.use()
    asked = client(made, access=make.access.Checked(tmp_path))
    headers = {**KEY, "Authorization": make.access.bearer(who)}
    requests = [
        ("PUT", AGENT, body(made)),
        ("DELETE", f"{AGENT}?by=bob", None),
        ("GET", AGENT, None),
        ("GET", "/aliases?kind=agent", None),
    ]
    answers = [asked.request(*each[:2], json=each[2], headers=headers) for each in requests]
    assert [answer.status_code for answer in answers] == statuses


@pytest.mark.compute
def test_responses_to_an_operator_without_auditor_role_omit_agent_alias_changes(made, tmp_path):
    made.use()
    asked = client(made, access=make.access.Checked(tmp_path))
    headers = {**KEY, "Authorization": make.access.bearer("acme-operator")}
    for params in ({"dry_run": True}, {}, {}):
        again = asked.put(AGENT, params=params, json=body(made), headers=headers)
        assert (again.status_code, again.json()) == (200, None)
    for params in ({"dry_run": True}, {}, {}):
        ended = asked.delete(AGENT, params={"by": "bob", **params}, headers=headers)
        assert (ended.status_code, ended.json()) == (200, None)
    assert [each.ended for each in made.ledger.aliases.history()] == [False, True]
    assert move(asked, headers=headers).json()["simulator"] == SIMULATOR


@pytest.mark.compute
def test_a_move_without_its_kind_is_refused_as_the_schema_requires(made):
    asked = client(made)
    schemas = asked.get("/openapi.json").json()["components"]["schemas"]
    for move_type, sent in (
        ("AliasMove", {"simulator": SIMULATOR, "by": "ada"}),
        ("AgentMove", {"agent": body(made)["agent"], "by": "ada"}),
    ):
        assert asked.put("/aliases/any", json=sent).status_code == 422
        assert schemas[move_type]["required"] == ["kind", *sent]


def test_the_operator_client_sets_and_ends_an_agent_alias(made):
    async def work():
        served = make.service.service(made.store, pinned=made.simulator.manifest)
        transport = httpx.ASGITransport(served.app)
        operator = OperatorClient("http://simulator", transport=transport)
        used = await operator.move_alias("shell-agent@production", made.move())
        ended = await operator.end_alias("shell-agent@production", "bob & co", "odd/&?")
        with pytest.raises(SimulatorError, match="there is no alias 'shell-agent@trial'"):
            await operator.end_alias("shell-agent@trial", "bob")
        await operator.close()
        return used, ended

    used, ended = asyncio.run(work())
    assert (used.target, used.ended) == ("shell-agent@1", False)
    assert (ended.set_by, ended.reason, ended.ended) == ("bob & co", "odd/&?", True)
