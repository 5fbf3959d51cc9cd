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


def test_an_agent_in_use_is_an_alias_of_the_registry_until_it_is_taken_out_of_use(made):
    used = set_agent_alias(ALIAS, made.ref, made.store, "ada", "the first")
    assert (used.target, used.set_by, used.reason) == ("shell-agent@1", "ada", "the first")
    assert made.registry.aliases() == {("shell-agent", "production"): 1}
    assert end_alias(ALIAS, made.store, "bob").ended
    assert made.registry.aliases() == {}
    assert problems(made) == []


def test_who_was_killed_between_the_two_does_it_again_and_comes_to_the_same_end(made):
    signed = made.signed()
    assert len(problems(made)) == 1
    assert set_agent_alias(ALIAS, made.ref, made.store, "bob") == signed
    assert problems(made) == []
    ended = made.retire()
    assert len(problems(made)) == 1
    assert end_alias(ALIAS, made.store, "bob") == ended
    assert problems(made) == []


def test_what_cannot_be_used_is_refused_before_anything_is_signed(made):
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


def test_where_a_service_is_deployed_it_signs(made, tmp_path_factory, monkeypatch):
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


def test_where_a_service_is_asked_by_no_auditor_it_tells_nothing_and_mlflow_hears(
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


def test_a_name_that_moves_tells_which_agents_in_use_are_to_be_validated_and_the_registry(made):
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


def test_a_registry_that_is_gone_holds_no_move_of_a_name_up(caplog):
    def gone():
        raise StoreError("the registry gave no answer")

    mirror({}, gone)
    assert "the registry gave no answer" in caplog.text


def test_a_store_in_which_nothing_was_signed_has_nothing_to_validate(tmp_path):
    pinned = records.pinned(tmp_path)
    assert due_by(set_alias("stable", pinned.digest, tmp_path, "ada"), tmp_path) == {}
    assert not (tmp_path / "mlflow.db").exists()
