"""Aliases of agents in a store with an MLflow: signed first, then mirrored."""

import pytest

import make.access
import make.agent
import make.registry
import make.service
from agentworld.audit.checks.alias_mirror import registry_problems
from agentworld.errors import InputError, NotFound, StoreError
from agentworld.lineage.base import VersionRef
from agentworld.operations.aliases import due_by, end_alias, mirror, set_agent_alias
from agentworld.operations.simulators import set_alias
from make import records

pytestmark = pytest.mark.waits

ALIAS = "shell-agent@production"


@pytest.fixture
def agent_store(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return make.agent.registered(tmp_path, make.registry.registry(tmp_path))


def problems(agent_store):
    return [*registry_problems(agent_store.sources)]


def marks(agent_store):
    versions = agent_store.registry.versions(kind="agent")
    return {str(version.ref): version.tags.get("revalidate") for version in versions}


def test_an_agents_alias_is_mirrored_in_the_registry_until_the_alias_is_ended(agent_store):
    change = set_agent_alias(ALIAS, agent_store.ref, agent_store.store, "ada", "the first")
    assert (change.target, change.set_by, change.reason) == ("shell-agent@1", "ada", "the first")
    assert agent_store.registry.aliases() == {("shell-agent", "production"): 1}
    assert end_alias(ALIAS, agent_store.store, "bob").ended
    assert agent_store.registry.aliases() == {}
    assert problems(agent_store) == []


def test_repeating_an_interrupted_alias_change_completes_the_mirror(agent_store):
    new_change = agent_store.signed()
    assert len(problems(agent_store)) == 1
    assert set_agent_alias(ALIAS, agent_store.ref, agent_store.store, "bob") == new_change
    assert problems(agent_store) == []
    last_change = agent_store.retire()
    assert len(problems(agent_store)) == 1
    assert end_alias(ALIAS, agent_store.store, "bob") == last_change
    assert problems(agent_store) == []


def test_an_invalid_alias_or_version_is_refused_before_signing(agent_store):
    for label in ("latest", "v2", "Production", "a/b", ""):
        with pytest.raises(InputError, match="is not an alias of an agent; write NAME@ALIAS with"):
            set_agent_alias(f"shell-agent@{label}", agent_store.ref, agent_store.store, "ada")
    with pytest.raises(InputError, match="cannot be set"):
        set_agent_alias(ALIAS, agent_store.ref, agent_store.store, "")
    with pytest.raises(InputError, match="an alias of other, and shell-agent@1 is not a version"):
        set_agent_alias("other@production", agent_store.ref, agent_store.store, "ada")
    unknown_version = VersionRef(name="shell-agent", version=7)
    with pytest.raises(NotFound, match="there is no version 7"):
        set_agent_alias(ALIAS, unknown_version, agent_store.store, "ada")
    assert agent_store.ledger.attestations.find("alias") == []


def test_a_simulators_alias_is_ended_without_a_registry(tmp_path):
    simulator = records.pinned(tmp_path)
    set_alias("stable", simulator.digest, tmp_path, "ada")
    change = end_alias("stable", tmp_path, "bob", "an outage")
    assert (change.ended, change.set_by, change.reason) == (True, "bob", "an outage")
    assert end_alias("stable", tmp_path, "ada") == change
    assert not (tmp_path / "mlflow.db").exists()


def test_a_deployed_service_signs_alias_changes(agent_store, tmp_path_factory, monkeypatch):
    service = make.service.service(agent_store.store, pinned=agent_store.simulator.manifest)
    other_store = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{agent_store.store}/mlflow.db")
    with make.service.listening(service.app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        set_agent_alias(ALIAS, agent_store.ref, other_store, "ada")
        assert agent_store.registry.aliases() == {("shell-agent", "production"): 1}
        end_alias(ALIAS, other_store, "ada")
    assert len(agent_store.ledger.attestations.find("alias")) == 2
    assert not (other_store / "ledger.db").exists()


def test_without_the_auditor_role_alias_changes_return_none_and_reach_mlflow(
    agent_store, tmp_path_factory, monkeypatch
):
    other_store, folder = tmp_path_factory.mktemp("elsewhere"), tmp_path_factory.mktemp("access")
    service = make.service.service(
        agent_store.store, pinned=agent_store.simulator.manifest, access=make.access.Checked(folder)
    )
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{agent_store.store}/mlflow.db")
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL", make.access.key("acme-operator"))
    with make.service.listening(service.app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        assert set_agent_alias(ALIAS, agent_store.ref, other_store, "ada") is None
        assert agent_store.registry.aliases() == {("shell-agent", "production"): 1}
        assert end_alias(ALIAS, other_store, "ada") is None
    assert agent_store.registry.aliases() == {}


def test_moving_an_alias_marks_agents_in_use_for_revalidation(agent_store):
    idle_agent = make.agent.registered(agent_store.store, agent_store.registry, "idle")
    set_agent_alias(ALIAS, agent_store.ref, agent_store.store, "ada")
    first_change = set_alias("stable", agent_store.simulator.digest, agent_store.store, "ada")
    assert due_by(first_change, agent_store.store) == {}
    new_simulator = records.pinned(agent_store.store, context_tokens=512)
    second_change = set_alias("stable", new_simulator.digest, agent_store.store, "ada")
    due = due_by(second_change, agent_store.store)
    assert {agent: entry.simulator for agent, entry in due.items()} == {
        "shell-agent@1": new_simulator.digest
    }
    reason = str(due["shell-agent@1"])
    assert marks(agent_store) == {"shell-agent@1": reason, str(idle_agent.ref): None}
    agent_store.validated(new_simulator.digest)
    assert due_by(second_change, agent_store.store) == {}
    assert marks(agent_store) == {"shell-agent@1": None, str(idle_agent.ref): None}


def test_an_unreachable_registry_does_not_block_an_alias_move(caplog):
    def fail():
        raise StoreError("the registry gave no answer")

    mirror({}, fail)
    assert "the registry gave no answer" in caplog.text


def test_a_store_without_agents_in_use_has_nothing_to_validate(tmp_path):
    simulator = records.pinned(tmp_path)
    assert due_by(set_alias("stable", simulator.digest, tmp_path, "ada"), tmp_path) == {}
    assert not (tmp_path / "mlflow.db").exists()
