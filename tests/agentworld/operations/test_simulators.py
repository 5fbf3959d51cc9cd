import os
from collections.abc import Iterator

import pytest

import make.access
import make.agent
import make.many
import make.registry
import make.service
from agentworld.audit.checks.alias_history import alias_problems
from agentworld.errors import EvidenceError, InputError, NotFound, SimulatorError
from agentworld.lineage.base import WorldModel
from agentworld.operations.base_model import world_model_of
from agentworld.operations.ledger import open_evidence, open_ledger
from agentworld.operations.simulators import (
    alias_history,
    find,
    resolve_simulator,
    set_alias,
    sheet,
    summaries,
)
from agentworld.records.base import Digest
from make import records


def test_a_simulator_is_found_by_alias_digest_or_digest_prefix(tmp_path):
    simulator = records.pinned(tmp_path)
    set_alias("production", simulator.digest[7:12], tmp_path, "me")
    for name in ("production", simulator.digest, simulator.digest[7:12]):
        assert find(name, tmp_path) == simulator


@pytest.mark.waits
def test_an_alias_names_the_simulator_set_last_and_keeps_its_history(tmp_path):
    old, new = records.pinned(tmp_path), records.pinned(tmp_path, context_tokens=512)
    for simulator in (old, new):
        set_alias("production", simulator.digest, tmp_path, "me")
    assert find("production", tmp_path) == new
    history = alias_history(tmp_path, "production")
    assert [change.simulator for change in history] == [old.digest, new.digest]
    assert [sheet(simulator, tmp_path).aliases for simulator in (old, new)] == [(), ("production",)]


@pytest.mark.waits
def test_a_garbled_agent_alias_does_not_affect_simulator_aliases(tmp_path):
    agent_store = make.agent.registered(tmp_path)
    agent_store.signed()
    with agent_store.ledger._database.transaction() as connection:
        connection.exec_driver_sql("UPDATE aliases SET gate = '['")
    with pytest.raises(EvidenceError):
        alias_history(tmp_path)
    digest = agent_store.simulator.digest
    set_alias("stable", digest, tmp_path, "me")
    set_alias("next", "stable", tmp_path, "me")
    assert find("next", tmp_path) == agent_store.simulator
    assert [summary.aliases for summary in summaries(tmp_path)] == [("stable", "next")]
    assert sheet(agent_store.simulator, tmp_path).aliases == ("stable", "next")


def test_an_alias_set_locally_is_signed_with_the_stores_key(tmp_path):
    simulator = records.pinned(tmp_path)
    set_alias("production", simulator.digest, tmp_path, "me")
    ledger = open_ledger(tmp_path)
    evidence = open_evidence(tmp_path)
    assert list(alias_problems(ledger.aliases, ledger.attestations, evidence)) == []
    ledger.aliases.set("production", simulator.digest, "eve")
    (problem,) = alias_problems(ledger.aliases, ledger.attestations, evidence)
    assert problem.endswith("by 'eve', which is not signed")
    ledger.close()


def test_an_alias_for_a_missing_simulator_is_refused_before_a_ledger_is_created(tmp_path):
    with pytest.raises(NotFound, match="there is no simulator"):
        set_alias("production", "00", tmp_path, "me")
    with pytest.raises(NotFound, match="there is no alias 'production'"):
        alias_history(tmp_path, "production")
    assert alias_history(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["Production", "a b", ""])
def test_an_invalid_alias_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="is not an alias"):
        set_alias(name, records.pinned(tmp_path).digest, tmp_path, "me")


def test_the_last_attached_evaluation_decides_if_a_simulator_is_validated(tmp_path):
    simulator = records.pinned(tmp_path)
    artifact = simulator.manifest.artifact
    first_sheet = sheet(simulator, tmp_path)
    assert (first_sheet.validated, first_sheet.answers) == (False, None)
    assert first_sheet.problems == ("no evaluation is attached; run `agentworld evaluate served`",)
    good, poor = records.grouped_report(artifact), records.grouped_report(artifact, missing=2)
    for seconds, report in enumerate([good, poor]):
        simulator.attach(report)
        os.utime(simulator.folder / f"reports/{report.digest[7:]}.json", (seconds, seconds))
        last_sheet = sheet(simulator, tmp_path)
        assert last_sheet.validated == (report is good)
        assert last_sheet.answers == report.stages["rl"].answers
    assert last_sheet.problems == ("2 of 100 answers are missing",)


def test_an_agents_report_does_not_validate_a_simulator(tmp_path):
    simulator = records.pinned(tmp_path)
    report = records.agent_report(simulator=simulator.digest)
    simulator.attach(report)
    agent_sheet = sheet(simulator, tmp_path)
    assert (agent_sheet.validated, agent_sheet.reports) == (False, (report.digest,))


def test_a_summary_shows_the_weights_or_the_endpoint_of_a_simulator(tmp_path):
    engine = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "somebody/model"}
    local = records.pinned(tmp_path)
    remote = records.pinned(tmp_path, artifact=None, files={}, engine=engine)
    rows = {summary.simulator: summary for summary in summaries(tmp_path)}
    assert rows[local.digest].world_model == local.manifest.artifact
    assert rows[remote.digest].world_model == "somebody/model at http://127.0.0.1:8000"
    assert [rows[simulator.digest].verifiable for simulator in (local, remote)] == [True, False]


@pytest.mark.waits
def test_the_sheet_of_a_registered_world_model_shows_its_version(tmp_path, monkeypatch):

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    simulator = records.pinned(tmp_path)
    stages = [records.checkpoint("rl", artifact=simulator.manifest.artifact)]
    world = WorldModel(stages=tuple(stages), report=records.digest("report"))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"weights")
    make.registry.registry(tmp_path).register_world_model("shell", world, tmp_path / "model")
    assert sheet(simulator, tmp_path).world_model == "shell@1"
    assert world_model_of(simulator.manifest.artifact, tmp_path) == world
    assert world_model_of(records.digest("never registered"), tmp_path) is None


@pytest.fixture
def meant(tmp_path_factory, monkeypatch) -> Iterator[dict[str, Digest]]:
    """The targets of aliases at a deployed service of many simulators, for an agent."""
    folder, catalog = tmp_path_factory.mktemp("service"), make.many.Catalogue()
    access = make.access.Checked(folder)
    with make.service.listening(make.many.app(folder, catalog, access)) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        monkeypatch.setenv("AGENTWORLD_CREDENTIAL", make.access.key("acme-agent"))
        yield catalog.aliases


@pytest.mark.waits
def test_a_deployed_service_resolves_aliases(tmp_path, meant):
    first, second = records.pinned(tmp_path), records.pinned(tmp_path, context_tokens=512)
    set_alias("terminal", second.digest, tmp_path, "me")
    meant["terminal"] = first.digest
    for name in ("terminal", first.digest, first.digest[7:17], str(first.folder)):
        assert resolve_simulator(name, tmp_path) == first


@pytest.mark.waits
@pytest.mark.parametrize("name", ["gone", "Gone", "0000"])
@pytest.mark.usefixtures("meant")
def test_a_name_unknown_to_a_deployed_service_is_not_found(tmp_path, name):
    message = f"^there is no alias '{name}' at AGENTWORLD_SERVICE_URL, and there is no simulator"
    with pytest.raises(NotFound, match=message):
        resolve_simulator(name, tmp_path)


@pytest.mark.waits
def test_a_simulator_resolved_by_a_deployed_service_must_exist_in_the_store(tmp_path, meant):
    meant["terminal"] = records.digest("elsewhere")
    message = (
        f"^'terminal' means {records.digest('elsewhere')} at AGENTWORLD_SERVICE_URL, and there is"
    )
    with pytest.raises(NotFound, match=message):
        resolve_simulator("terminal", tmp_path)


@pytest.mark.waits
def test_a_forbidden_alias_lookup_does_not_fall_back_to_the_stores_alias(
    tmp_path, meant, monkeypatch
):
    simulator = records.pinned(tmp_path)
    set_alias("terminal", simulator.digest, tmp_path, "me")
    meant["terminal"] = simulator.digest
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL", make.access.key("office-auditor"))
    with pytest.raises(SimulatorError, match="lacks the role agent") as error:
        resolve_simulator("terminal", tmp_path)
    assert error.value.kind == "forbidden"
    assert resolve_simulator(simulator.digest, tmp_path) == simulator
