"""Changes of simulator and agent aliases over HTTP by operators."""

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
def service(tmp_path):
    return make.service.service(tmp_path)


@pytest.fixture
def http(service):
    return TestClient(service.app, base_url="http://localhost")


def keep(service, report):
    return ObjectStore(str(service.store / "objects")).put(report.canonical)


def move(http, alias="stable", params=None, headers=KEY, **fields):
    request_body = {"kind": "simulator", "simulator": SIMULATOR, "by": "ada", **fields}
    return http.put(f"/aliases/{alias}", json=request_body, params=params, headers=headers)


def gate(least, metric="live_gain"):
    return [{"metric": metric, "least": least}]


def test_a_report_that_passes_the_gate_moves_an_alias(service, http):
    report = keep(service, records.agent_report())
    answer = move(http, gate=gate(0.3), report=report)
    assert answer.status_code == 200, answer.text
    (change,) = http.get("/aliases/stable").json()
    assert change == answer.json()
    assert change["gate"] == [{"metric": "live_gain", "least": 0.3, "value": 0.4}]
    assert (change["set_by"], change["report"], change["override"]) == ("ada", report, None)


def test_an_evaluation_of_the_weights_counts_only_for_the_served_simulator(service, http):
    artifact = records.manifest().artifact
    report = keep(service, records.world_report(artifacts={"rl": artifact}))
    assert move(http, gate=gate(0.8, "exact_match"), report=report).status_code == 200
    assert move(http, simulator=NEXT, report=report).status_code == 409


def test_a_failed_gate_refuses_the_move_with_the_reason(service, http):
    report = keep(service, records.agent_report())
    answer = move(http, gate=gate(0.5), report=report)
    assert answer.status_code == 409
    message = answer.json()["error"]["message"]
    assert message.startswith("live_gain is 0.4 in the report")
    assert http.get("/aliases").json() == []


def test_an_override_is_recorded_with_the_failed_gate_result(service, http):
    report = keep(service, records.agent_report())
    assert move(http, gate=gate(0.5), report=report, override="an outage").status_code == 200
    (change,) = http.get("/aliases/stable").json()
    assert change["override"] == "an outage"
    assert change["gate"][0]["value"] == 0.4


def test_an_unneeded_override_is_not_recorded(service, http):
    report = keep(service, records.agent_report())
    move(http, gate=gate(0.1), report=report, override="an outage")
    assert http.get("/aliases/stable").json()[0]["override"] is None


def test_a_report_missing_from_the_object_store_is_refused(http):
    answer = move(http, gate=gate(0.1), report=records.digest("lost"))
    assert answer.status_code == 409
    assert "is not in the object store" in answer.json()["error"]["message"]


def test_an_object_that_is_not_a_report_is_refused(service, http):
    digest = ObjectStore(str(service.store / "objects")).put(b"{}")
    answer = move(http, report=digest)
    assert (answer.status_code, "this is no report" in answer.text) == (409, True)


def test_a_repeated_move_is_recorded_once(http):
    assert move(http).json() == move(http).json()
    move(http, headers={"Idempotency-Key": "another"})
    assert len(http.get("/aliases/stable").json()) == 2


def test_the_move_and_the_end_of_an_alias_are_signed_and_mirrored(service, http):
    assert move(http).status_code == 200
    move(http)
    http.delete("/aliases/stable", params={"by": "bob"}, headers={"Idempotency-Key": "end"})
    statements = service.ledger.attestations.find("alias", subject="stable")
    copies = WriteOnce(str(service.store / "mirror"))
    assert len(statements) == 2
    assert copies.names("alias-changes/simulator/stable/") == sorted(s.name for s in statements)


def test_an_alias_change_names_the_custom_resource_that_requested_the_change(http):
    move(http, request="an-object/3")
    params = {"by": "bob", "request": "an-object/4"}
    http.delete("/aliases/stable", params=params, headers={"Idempotency-Key": "end"})
    requests = [change["request"] for change in http.get("/aliases/stable").json()]
    assert requests == ["an-object/3", "an-object/4"]
    assert move(http, request="no request").status_code == 422


def test_a_dry_run_checks_the_gate_and_records_nothing(http):
    assert move(http, params={"dry_run": True}).status_code == 200
    assert move(http, params={"dry_run": True}, gate=gate(0.1)).status_code == 409
    assert http.get("/aliases").json() == []


@pytest.mark.compute
def test_a_repeated_deletion_ends_an_alias_once(http):
    move(http)
    deletion = {"params": {"by": "bob"}, "headers": {"Idempotency-Key": "end"}}
    answer = http.delete("/aliases/stable", params={"by": "bob", "dry_run": True}, headers=KEY)
    assert (answer.status_code, len(http.get("/aliases/stable").json())) == (200, 1)
    assert http.delete("/aliases/stable", **deletion).json()["ended"]
    assert http.delete("/aliases/stable", **deletion).status_code == 200
    assert [change["ended"] for change in http.get("/aliases/stable").json()] == [False, True]
    assert http.delete("/aliases/nobody", **deletion).status_code == 404


def test_an_alias_resolves_only_to_the_served_simulator(http):
    move(http, "old", simulator=records.digest("old"))
    move(http)
    assert http.get("/aliases/stable/simulator").json() == SIMULATOR
    answer = http.get("/aliases/old/simulator")
    assert (answer.status_code, answer.json()["error"]["kind"]) == (409, "conflict")


@pytest.mark.compute
def test_open_runs_and_episodes_of_a_simulator_are_counted(http):
    def use():
        use_answer = http.get(f"/simulators/{SIMULATOR}/use").json()
        return {name: use_answer[name] for name in ("open_runs", "open_episodes")}

    assert use() == {"open_runs": 0, "open_episodes": 0}
    run = http.post("/runs", json=make.service.OPENING.model_dump(mode="json")).json()["run"]["id"]
    http.post("/episodes", json={"run": run})
    assert use() == {"open_runs": 1, "open_episodes": 1}
    closing = RunClosing(final_weights=records.digest("final")).model_dump(mode="json")
    assert http.post(f"/runs/{run}/close", json=closing).status_code == 200
    assert use() == {"open_runs": 0, "open_episodes": 0}


@pytest.mark.compute
def test_the_use_of_a_simulator_lists_its_current_and_canary_aliases(http):
    def aliases(simulator):
        return http.get(f"/simulators/{simulator}/use").json()["aliases"]

    def put(alias, key, **fields):
        move(http, alias, headers={"Idempotency-Key": key}, **fields)

    put("b", "1")
    put("a", "2", canary={"simulator": NEXT, "percent": 5})
    put("c", "3", simulator=NEXT)
    assert (aliases(SIMULATOR), aliases(NEXT)) == (["a", "b"], ["a", "c"])
    put("b", "4", simulator=NEXT)
    http.delete("/aliases/c", params={"by": "bob"}, headers={"Idempotency-Key": "5"})
    assert (aliases(SIMULATOR), aliases(NEXT)) == (["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("caller", "method", "path", "status"),
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
def test_alias_requests_are_allowed_by_role(tmp_path, caller, method, path, status):
    service = make.service.service(tmp_path, access=make.access.Checked(tmp_path))
    http = TestClient(service.app, base_url="http://localhost")
    headers = {"Authorization": make.access.bearer(caller), **KEY}
    body = {"kind": "simulator", "simulator": SIMULATOR, "by": "ada"} if method == "PUT" else None
    assert http.request(method, path, json=body, headers=headers).status_code == status


AGENT = "/aliases/shell-agent@production"


@pytest.fixture
def agent(tmp_path):
    return make.agent.registered(tmp_path)


def connect(agent, **access):
    service = make.service.service(agent.store, pinned=agent.simulator.manifest, **access)
    return TestClient(service.app, base_url="http://localhost", headers=KEY)


def body(registered, **fields):
    return registered.move(**fields).model_dump(mode="json")


@pytest.mark.compute
def test_an_agent_alias_is_set_and_ended(agent):
    http, second_key = connect(agent), {"Idempotency-Key": "again"}
    set_answer = http.put(AGENT, json=body(agent, reason="the first"))
    assert set_answer.status_code == 200, set_answer.text
    assert http.put(AGENT, json=body(agent), headers=second_key).json() == set_answer.json()
    assert (set_answer.json()["simulator"], set_answer.json()["reason"]) == (
        agent.simulator.digest,
        "the first",
    )
    end_key = {"Idempotency-Key": "end"}
    end_answer = http.delete(AGENT, params={"by": "bob", "reason": "an outage"}, headers=end_key)
    assert http.delete(AGENT, params={"by": "bob"}).json() == end_answer.json()
    assert (end_answer.json()["reason"], end_answer.json()["ended"]) == ("an outage", True)
    assert http.get(AGENT).json() == [set_answer.json(), end_answer.json()]
    assert http.get("/aliases").json() == []
    assert http.get("/aliases?kind=agent").json() == http.get(AGENT).json()


def test_an_unattested_agent_or_an_unset_agent_alias_is_not_found(agent):
    http = connect(agent)
    answer = http.put(AGENT, json=body(agent, agent=agent.version(run="nobody's")))
    assert (answer.status_code, answer.json()["error"]["kind"]) == (404, "not-found")
    assert http.delete(AGENT, params={"by": "bob"}).status_code == 404
    assert http.put(AGENT, json=body(agent)).status_code == 200
    assert http.get(f"{AGENT}/simulator").status_code == 404


@pytest.mark.parametrize("alias", ["a@latest", "a@v1", "a@Production", "-a@b", "a'b@c", "a@b@c"])
def test_an_invalid_agent_alias_is_refused(agent, alias):
    http = connect(agent)
    assert http.put(f"/aliases/{alias}", json=body(agent)).status_code == 422
    answer = http.delete(f"/aliases/{alias}", params={"by": "bob"})
    assert answer.status_code == (404 if alias in ("a@latest", "a@v1") else 422)


def test_an_alias_of_one_kind_refuses_a_move_of_the_other_kind(agent):
    http = connect(agent)
    assert http.put("/aliases/stable", json=body(agent)).status_code == 422
    assert move(http, "shell-agent@production").status_code == 422


@pytest.mark.compute
@pytest.mark.parametrize(
    ("caller", "statuses"),
    [
        ("acme-agent", [403, 403, 403, 403]),
        ("office-auditor", [403, 403, 200, 200]),
        ("acme-operator", [200, 200, 403, 403]),
    ],
)
def test_operators_set_agent_aliases_and_auditors_read_their_histories(
    agent, tmp_path, caller, statuses
):
    """The run of an agent may belong to another tenant."""
    agent.use()
    http = connect(agent, access=make.access.Checked(tmp_path))
    headers = {**KEY, "Authorization": make.access.bearer(caller)}
    requests = [
        ("PUT", AGENT, body(agent)),
        ("DELETE", f"{AGENT}?by=bob", None),
        ("GET", AGENT, None),
        ("GET", "/aliases?kind=agent", None),
    ]
    answers = [http.request(*request[:2], json=request[2], headers=headers) for request in requests]
    assert [answer.status_code for answer in answers] == statuses


@pytest.mark.compute
def test_responses_to_an_operator_without_auditor_role_omit_agent_alias_changes(agent, tmp_path):
    agent.use()
    http = connect(agent, access=make.access.Checked(tmp_path))
    headers = {**KEY, "Authorization": make.access.bearer("acme-operator")}
    for params in ({"dry_run": True}, {}, {}):
        set_answer = http.put(AGENT, params=params, json=body(agent), headers=headers)
        assert (set_answer.status_code, set_answer.json()) == (200, None)
    for params in ({"dry_run": True}, {}, {}):
        end_answer = http.delete(AGENT, params={"by": "bob", **params}, headers=headers)
        assert (end_answer.status_code, end_answer.json()) == (200, None)
    assert [change.ended for change in agent.ledger.aliases.history()] == [False, True]
    assert move(http, headers=headers).json()["simulator"] == SIMULATOR


@pytest.mark.compute
def test_a_move_without_its_kind_is_refused_as_the_schema_requires(agent):
    http = connect(agent)
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    for move_type, fields in (
        ("AliasMove", {"simulator": SIMULATOR, "by": "ada"}),
        ("AgentMove", {"agent": body(agent)["agent"], "by": "ada"}),
    ):
        assert http.put("/aliases/any", json=fields).status_code == 422
        assert schemas[move_type]["required"] == ["kind", *fields]


def test_the_operator_client_sets_and_ends_an_agent_alias(agent):
    async def work():
        service = make.service.service(agent.store, pinned=agent.simulator.manifest)
        transport = httpx.ASGITransport(service.app)
        operator = OperatorClient("http://simulator", transport=transport)
        set_change = await operator.move_alias("shell-agent@production", agent.move())
        end_change = await operator.end_alias("shell-agent@production", "bob & co", "odd/&?")
        with pytest.raises(SimulatorError, match="there is no alias 'shell-agent@trial'"):
            await operator.end_alias("shell-agent@trial", "bob")
        await operator.close()
        return set_change, end_change

    set_change, end_change = asyncio.run(work())
    assert (set_change.target, set_change.ended) == ("shell-agent@1", False)
    assert (end_change.set_by, end_change.reason, end_change.ended) == ("bob & co", "odd/&?", True)
