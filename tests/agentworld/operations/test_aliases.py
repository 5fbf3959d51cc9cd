"""Agents in use, in a store with an MLflow: signed first, then mirrored."""

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
def made(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return make.agent.registered(tmp_path, make.registry.registry(tmp_path))


def problems(made):
    return [*registry_problems(made.sources)]


def marks(made):
    versions = made.registry.versions(kind="agent")
    return {str(each.ref): each.tags.get("revalidate") for each in versions}


def test_an_agents_alias_is_mirrored_in_the_registry_until_the_alias_is_ended(made):
    used = set_agent_alias(ALIAS, made.ref, made.store, "ada", "the first")
    assert (used.target, used.set_by, used.reason) == ("shell-agent@1", "ada", "the first")
    assert made.registry.aliases() == {("shell-agent", "production"): 1}
    assert end_alias(ALIAS, made.store, "bob").ended
    assert made.registry.aliases() == {}
    assert problems(made) == []


def test_repeating_an_interrupted_alias_change_completes_the_mirror(made):
    signed = made.signed()
    assert len(problems(made)) == 1
    assert set_agent_alias(ALIAS, made.ref, made.store, "bob") == signed
    assert problems(made) == []
    ended = made.retire()
    assert len(problems(made)) == 1
    assert end_alias(ALIAS, made.store, "bob") == ended
    assert problems(made) == []


def test_an_invalid_alias_or_version_is_refused_before_signing(made):
    for label in ("latest", "v2", "Production", "a/b", ""):
        with pytest.raises(InputError, match="is not an alias of an agent; write NAME@ALIAS with"):
            set_agent_alias(f"shell-agent@{label}", made.ref, made.store, "ada")
    with pytest.raises(InputError, match="cannot be set"):
        set_agent_alias(ALIAS, made.ref, made.store, "")
    with pytest.raises(InputError, match="an alias of other, and shell-agent@1 is not a version"):
        set_agent_alias("other@production", made.ref, made.store, "ada")
    unknown = VersionRef(name="shell-agent", version=7)
    with pytest.raises(NotFound, match="there is no version 7"):
        set_agent_alias(ALIAS, unknown, made.store, "ada")
    assert made.ledger.attestations.find("alias") == []


def test_a_simulators_alias_is_ended_without_a_registry(tmp_path):
    pinned = records.pinned(tmp_path)
    set_alias("stable", pinned.digest, tmp_path, "ada")
    ended = end_alias("stable", tmp_path, "bob", "an outage")
    assert (ended.ended, ended.set_by, ended.reason) == (True, "bob", "an outage")
    assert end_alias("stable", tmp_path, "ada") == ended
    assert not (tmp_path / "mlflow.db").exists()


def test_a_deployed_service_signs_alias_changes(made, tmp_path_factory, monkeypatch):
    service = make.service.service(made.store, pinned=made.simulator.manifest)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{made.store}/mlflow.db")
    with make.service.listening(service.app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        set_agent_alias(ALIAS, made.ref, elsewhere, "ada")
        assert made.registry.aliases() == {("shell-agent", "production"): 1}
        end_alias(ALIAS, elsewhere, "ada")
    assert len(made.ledger.attestations.find("alias")) == 2
    assert not (elsewhere / "ledger.db").exists()


def test_without_the_auditor_role_alias_changes_return_none_and_reach_mlflow(
    made, tmp_path_factory, monkeypatch
):
    elsewhere, folder = tmp_path_factory.mktemp("elsewhere"), tmp_path_factory.mktemp("access")
    service = make.service.service(
        made.store, pinned=made.simulator.manifest, access=make.access.Checked(folder)
    )
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{made.store}/mlflow.db")
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL", make.access.key("acme-operator"))
    with make.service.listening(service.app) as url:
        monkeypatch.setenv("AGENTWORLD_SERVICE_URL", url)
        assert set_agent_alias(ALIAS, made.ref, elsewhere, "ada") is None
        assert made.registry.aliases() == {("shell-agent", "production"): 1}
        assert end_alias(ALIAS, elsewhere, "ada") is None
    assert made.registry.aliases() == {}


def test_moving_an_alias_marks_agents_in_use_for_revalidation(made):
    idle = make.agent.registered(made.store, made.registry, "idle")
    set_agent_alias(ALIAS, made.ref, made.store, "ada")
    first = set_alias("stable", made.simulator.digest, made.store, "ada")
    assert due_by(first, made.store) == {}
    following = records.pinned(made.store, context_tokens=512)
    moved = set_alias("stable", following.digest, made.store, "ada")
    due = due_by(moved, made.store)
    assert {agent: each.simulator for agent, each in due.items()} == {
        "shell-agent@1": following.digest
    }
    told = str(due["shell-agent@1"])
    assert marks(made) == {"shell-agent@1": told, str(idle.ref): None}
    made.validated(following.digest)
    assert due_by(moved, made.store) == {}
    assert marks(made) == {"shell-agent@1": None, str(idle.ref): None}


def test_an_unreachable_registry_does_not_block_an_alias_move(caplog):
    def gone():
        raise StoreError("the registry gave no answer")

    mirror({}, gone)
    assert "the registry gave no answer" in caplog.text


def test_a_store_without_agents_in_use_has_nothing_to_validate(tmp_path):
    pinned = records.pinned(tmp_path)
    assert due_by(set_alias("stable", pinned.digest, tmp_path, "ada"), tmp_path) == {}
    assert not (tmp_path / "mlflow.db").exists()
