"""Steps' signed statements about their own work, submitted to a service."""

import asyncio
import shutil
from pathlib import Path

import httpx
import pytest
from starlette.testclient import TestClient

import make.access
import make.service
from agentworld.client.simulator import SimulatorClient
from agentworld.errors import SimulatorError
from agentworld.operations.statements import sign, submit
from agentworld.records.statements.registration import Links, RegisteredVersion
from agentworld.records.statements.validation import Validation
from agentworld.records.step_statement import StepStatement
from agentworld.signing.envelope import attest
from agentworld.signing.keys import STEP_KEYS, ensure_signer
from agentworld.storage.objects import WriteOnce
from agentworld.storage.stores import Stores
from make import records
from make.statement import file

pytestmark = pytest.mark.compute

AT = "2026-03-01T12:00:00.000+00:00"
VERSION = RegisteredVersion(
    registered_as="world",
    version=1,
    artifact=records.digest("artifact"),
    run="",
    record=records.digest("record"),
    links=Links(run="r", model="m"),
    at=AT,
)
VALIDATION = Validation(
    artifact=records.digest("artifact"),
    imitated=records.digest("imitated"),
    step="0123456789abcdef",
    report=records.agent_report(),
    at=AT,
)


def body_of(
    store: Path, record: RegisteredVersion | Validation = VERSION, keys: str = STEP_KEYS
) -> dict:
    envelope = attest(record, ensure_signer(store / "keys" / keys)).envelope.decode()
    return {"kind": record.kind, "envelope": envelope}


@pytest.fixture
def client(tmp_path):
    return TestClient(make.service.service(tmp_path).app, base_url="http://localhost")


def statement_paths(store: Path) -> list[str]:
    """The names of the rows, after a check that each row has an equal copy."""
    rows = make.service.ledger(store).attestations.all()
    copies = WriteOnce(Stores.of(store).mirror_url)
    assert [copies.get(row.name) for row in rows] == [row.envelope for row in rows]
    return [row.name for row in rows]


@pytest.mark.parametrize("statement", [VERSION, VALIDATION], ids=["registration", "validation"])
def test_a_step_statement_is_stored_once_with_its_copy(client, tmp_path, statement):
    first = client.put("/statements", json=body_of(tmp_path, statement))
    assert first.status_code == 200, first.text
    later_statement = statement.model_copy(update={"at": "2026-03-02T12:00:00.000+00:00"})
    second = client.put("/statements", json=body_of(tmp_path, later_statement))
    assert (first.json(), second.json()) == (statement.path, statement.path)
    assert statement_paths(tmp_path) == [statement.path]


def test_submitting_a_statement_again_writes_its_missing_copy(client, tmp_path):
    client.put("/statements", json=body_of(tmp_path))
    (tmp_path / "mirror" / VERSION.path).unlink()
    client.put("/statements", json=body_of(tmp_path))
    assert statement_paths(tmp_path) == [VERSION.path]


def test_the_first_statement_of_a_version_is_kept_after_its_links_change(client, tmp_path):
    client.put("/statements", json=body_of(tmp_path))
    other_statement = VERSION.model_copy(update={"links": Links(run="another", model="m")})
    assert client.put("/statements", json=body_of(tmp_path, other_statement)).json() == VERSION.path
    assert statement_paths(tmp_path) == [VERSION.path]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keys": "simulator"}, "is not trusted"),
        ({"keys": "stranger"}, "is not trusted"),
        ({"record": VALIDATION}, "is not of kind registration"),
    ],
)
def test_a_statement_of_an_untrusted_key_or_another_kind_is_refused(
    client, tmp_path, changes, message
):
    body = {**body_of(tmp_path, **changes), "kind": "registration"}
    response = client.put("/statements", json=body)
    assert (response.status_code, response.json()["error"]["kind"]) == (422, "input")
    assert message in response.json()["error"]["message"]
    assert statement_paths(tmp_path) == []


@pytest.mark.parametrize(
    ("user", "status"), [("acme-agent", 200), ("office-auditor", 403), ("acme-operator", 403)]
)
def test_only_the_agent_role_may_submit_statements(tmp_path, user, status):
    app = make.service.service(tmp_path, access=make.access.Checked(tmp_path)).app
    headers = {"Authorization": make.access.bearer(user)}
    client = TestClient(app, base_url="http://localhost")
    response = client.put("/statements", json=body_of(tmp_path), headers=headers)
    assert response.status_code == status


def test_a_run_token_cannot_submit_statements(tmp_path):
    app = make.service.service(tmp_path, access=make.access.Checked(tmp_path)).app
    client = TestClient(app, base_url="http://localhost")
    opening = {"agent": "a", "starting_weights": records.digest("starting")}
    headers = {"Authorization": make.access.bearer("acme-agent")}
    token = client.post("/runs", json=opening, headers=headers).json()["token"]
    response = client.put(
        "/statements", json=body_of(tmp_path), headers={"Authorization": f"Bearer {token}"}
    )
    assert response.status_code == 422
    assert "a run token cannot store statements" in response.text


def test_the_client_submits_statements_and_raises_refusals(tmp_path):
    async def work():
        transport = httpx.ASGITransport(make.service.service(tmp_path).app)
        client = SimulatorClient("http://simulator", transport=transport)
        name = await client.file(StepStatement.model_validate(body_of(tmp_path)))
        with pytest.raises(SimulatorError, match="this registration cannot be kept"):
            await client.file(StepStatement(kind="registration", envelope="{}"))
        await client.close()
        return name

    assert asyncio.run(work()) == VERSION.path


def test_a_step_submits_to_the_deployed_service_or_to_its_own_store(
    tmp_path, tmp_path_factory, monkeypatch
):
    other_store, own_store = (tmp_path_factory.mktemp(name) for name in ("elsewhere", "alone"))
    file(VERSION, own_store)
    assert statement_paths(own_store) == [VERSION.path]
    monkeypatch.setenv("AGENTWORLD_KEYS", str(tmp_path / "keys"))
    with make.service.listening(make.service.service(tmp_path).app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        file(VERSION, other_store)
    assert VERSION.path in statement_paths(tmp_path)
    assert not (other_store / "ledger.db").exists()


def test_a_refused_statement_stays_in_the_steps_folder_and_is_submitted_again(
    tmp_path, tmp_path_factory, monkeypatch, caplog
):
    """The service does not trust the step's key at first."""
    step_store = tmp_path_factory.mktemp("elsewhere")
    app = make.service.service(tmp_path).app
    with make.service.listening(app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        sign(VERSION, step_store, step_store)
        assert submit(step_store, step_store) == step_store
        assert "is not kept with the ledger: this registration cannot be kept" in caplog.text
        assert statement_paths(tmp_path) == []
        trusted = tmp_path / "keys" / STEP_KEYS / "trusted"
        shutil.copytree(step_store / "keys" / STEP_KEYS / "trusted", trusted, dirs_exist_ok=True)
        submit(step_store, step_store)
        assert VERSION.path in statement_paths(tmp_path)


def test_a_step_without_a_key_submits_nothing(tmp_path):
    assert submit(tmp_path, tmp_path) == tmp_path
    assert not (tmp_path / "ledger.db").exists()
