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
MADE = RegisteredVersion(
    registered_as="world",
    version=1,
    artifact=records.digest("artifact"),
    run="",
    record=records.digest("record"),
    links=Links(run="r", model="m"),
    at=AT,
)
SEEN = Validation(
    artifact=records.digest("artifact"),
    imitated=records.digest("imitated"),
    step="0123456789abcdef",
    report=records.agent_report(),
    at=AT,
)


def signed(store: Path, told: RegisteredVersion | Validation = MADE, keys: str = STEP_KEYS) -> dict:
    envelope = attest(told, ensure_signer(store / "keys" / keys)).envelope.decode()
    return {"kind": told.kind, "envelope": envelope}


@pytest.fixture
def asked(tmp_path):
    return TestClient(make.service.service(tmp_path).app, base_url="http://localhost")


def kept(store: Path) -> list[str]:
    """The names of the rows, which are those of the copies."""
    rows = make.service.ledger(store).attestations.all()
    copies = WriteOnce(Stores.of(store).mirror_url)
    assert [copies.get(each.name) for each in rows] == [each.envelope for each in rows]
    return [each.name for each in rows]


@pytest.mark.parametrize("told", [MADE, SEEN], ids=["registration", "validation"])
def test_a_step_statement_is_stored_once_with_its_copy(asked, tmp_path, told):
    first = asked.put("/statements", json=signed(tmp_path, told))
    assert first.status_code == 200, first.text
    later = told.model_copy(update={"at": "2026-03-02T12:00:00.000+00:00"})
    again = asked.put("/statements", json=signed(tmp_path, later))
    assert (first.json(), again.json()) == (told.path, told.path)
    assert kept(tmp_path) == [told.path]


def test_submitting_a_statement_again_writes_its_missing_copy(asked, tmp_path):
    asked.put("/statements", json=signed(tmp_path))
    (tmp_path / "mirror" / MADE.path).unlink()
    asked.put("/statements", json=signed(tmp_path))
    assert kept(tmp_path) == [MADE.path]


def test_the_first_statement_of_a_version_is_kept_after_its_links_change(asked, tmp_path):
    asked.put("/statements", json=signed(tmp_path))
    linked = MADE.model_copy(update={"links": Links(run="another", model="m")})
    assert asked.put("/statements", json=signed(tmp_path, linked)).json() == MADE.path
    assert kept(tmp_path) == [MADE.path]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"keys": "simulator"}, "is not trusted"),
        ({"keys": "stranger"}, "is not trusted"),
        ({"told": SEEN}, "is not of kind registration"),
    ],
)
def test_a_statement_of_an_untrusted_key_or_another_kind_is_refused(
    asked, tmp_path, changes, words
):
    body = {**signed(tmp_path, **changes), "kind": "registration"}
    answer = asked.put("/statements", json=body)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "input")
    assert words in answer.json()["error"]["message"]
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    ("who", "status"), [("acme-agent", 200), ("office-auditor", 403), ("acme-operator", 403)]
)
def test_only_the_agent_role_may_submit_statements(tmp_path, who, status):
    app = make.service.service(tmp_path, access=make.access.Checked(tmp_path)).app
    headers = {"Authorization": make.access.bearer(who)}
    asked = TestClient(app, base_url="http://localhost")
    answer = asked.put("/statements", json=signed(tmp_path), headers=headers)
    assert answer.status_code == status


def test_a_run_token_cannot_submit_statements(tmp_path):
    app = make.service.service(tmp_path, access=make.access.Checked(tmp_path)).app
    asked = TestClient(app, base_url="http://localhost")
    opening = {"agent": "a", "starting_weights": records.digest("starting")}
    headers = {"Authorization": make.access.bearer("acme-agent")}
    token = asked.post("/runs", json=opening, headers=headers).json()["token"]
    answer = asked.put(
        "/statements", json=signed(tmp_path), headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 422
    assert "a run token cannot store statements" in answer.text


def test_the_client_submits_statements_and_raises_refusals(tmp_path):
    async def work():
        transport = httpx.ASGITransport(make.service.service(tmp_path).app)
        client = SimulatorClient("http://simulator", transport=transport)
        name = await client.file(StepStatement.model_validate(signed(tmp_path)))
        with pytest.raises(SimulatorError, match="this registration cannot be kept"):
            await client.file(StepStatement(kind="registration", envelope="{}"))
        await client.close()
        return name

    assert asyncio.run(work()) == MADE.path


def test_a_step_submits_to_the_deployed_service_or_to_its_own_store(
    tmp_path, tmp_path_factory, monkeypatch
):
    elsewhere, alone = (tmp_path_factory.mktemp(name) for name in ("elsewhere", "alone"))
    file(MADE, alone)
    assert kept(alone) == [MADE.path]
    monkeypatch.setenv("AGENTWORLD_KEYS", str(tmp_path / "keys"))
    with make.service.listening(make.service.service(tmp_path).app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        file(MADE, elsewhere)
    assert MADE.path in kept(tmp_path)
    assert not (elsewhere / "ledger.db").exists()


def test_a_refused_statement_stays_in_the_steps_folder_and_is_submitted_again(
    tmp_path, tmp_path_factory, monkeypatch, caplog
):
    """By a service that does not trust the step's key at first."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    app = make.service.service(tmp_path).app
    with make.service.listening(app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        sign(MADE, elsewhere, elsewhere)
        assert submit(elsewhere, elsewhere) == elsewhere
        assert "is not kept with the ledger: this registration cannot be kept" in caplog.text
        assert kept(tmp_path) == []
        trusted = tmp_path / "keys" / STEP_KEYS / "trusted"
        shutil.copytree(elsewhere / "keys" / STEP_KEYS / "trusted", trusted, dirs_exist_ok=True)
        submit(elsewhere, elsewhere)
        assert MADE.path in kept(tmp_path)


def test_a_step_without_a_key_submits_nothing(tmp_path):
    assert submit(tmp_path, tmp_path) == tmp_path
    assert not (tmp_path / "ledger.db").exists()
