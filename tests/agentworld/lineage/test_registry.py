import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import make.registry
from agentworld.errors import InputError, StoreError
from agentworld.lineage.base import Agent, RegisteredAgent, Registry, VersionRef, WorldModel
from agentworld.lineage.memory import MemoryRegistry
from agentworld.records.base import digest_bytes
from agentworld.records.statements.edge import Claim, Edge, SignedEdge, Traffic
from make import records


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("registry")


@pytest.fixture(params=["memory", pytest.param("mlflow", marks=pytest.mark.waits)])
def registry(request, database) -> Registry:
    if request.param == "memory":
        return MemoryRegistry()
    from agentworld.lineage.mlflow import MlflowRegistry

    return MlflowRegistry(make.registry.database(database), database / "artifacts")


@pytest.fixture
def model(tmp_path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"weights")
    (folder / "nested").mkdir()
    (folder / "nested/config").write_text("{}")
    return folder


def world_model(seed: str, **metrics: float) -> WorldModel:
    stages = ("cpt", "sft", "rl")
    made = tuple(
        records.checkpoint(stage, artifact=digest_bytes(f"{seed} {stage}".encode()))
        for stage in stages
    )
    return WorldModel(stages=made, report=digest_bytes(b"report"), metrics=metrics)


def agent(seed: str, run: str, simulator: str = "a simulator") -> Agent:
    made = records.checkpoint(
        "agent", artifact=digest_bytes(seed.encode()), simulator=digest_bytes(simulator.encode())
    )
    return Agent(checkpoint=made, run=run)


def test_a_version_returns_the_registered_world_model(registry, model):
    what = world_model("leads back", exact_match=0.8)
    assert registry.world_model(registry.register_world_model("worlds", what, model)) == what


def test_registering_the_same_artifact_again_makes_no_new_version(registry, model):
    first = registry.register_world_model("retried", world_model("retried"), model)
    assert registry.register_world_model("retried", world_model("retried"), model) == first


def test_another_artifact_is_the_next_version(registry, model):
    refs = [
        registry.register_world_model("counted", world_model(f"counted {n}"), model) for n in (1, 2)
    ]
    assert [ref.version for ref in refs] == [1, 2]


def test_the_same_weights_from_another_run_are_another_version(registry, model):
    refs = [
        registry.register_agent("twice", agent("twice", run), model) for run in ("r1", "r2", "r1")
    ]
    assert [ref.version for ref in refs] == [1, 2, 1]


def test_an_agents_version_returns_its_run_and_simulator(registry, model):
    what = agent("leads back", "run-7")
    assert registry.agent(registry.register_agent("agents", what, model)) == what


def test_the_agents_of_a_run_are_found(registry, model):
    ref = registry.register_agent("found", agent("found", "a run of its own"), model)
    registry.register_agent("found", agent("other", "another run"), model)
    assert registry.agents_of("a run of its own") == [ref]


def test_an_agent_registered_again_with_an_edge_is_a_new_version(registry, model):
    what = agent("edged", "a run whose edge comes later")
    first = registry.register_agent("edged", what, model)
    claim = Claim(
        agent="edged",
        artifact=what.artifact,
        starting_weights=digest_bytes(b"s"),
        simulator=digest_bytes(b"w"),
    )
    told = {"claim": claim, "run": what.run, "tenant": "local", "simulator": claim.simulator}
    edge = Edge(**told, traffic=Traffic(), log_length=1, root=None, grade="proven", at="now")
    signed = what.model_copy(update={"edge": SignedEdge(edge=edge, envelope="signed")})
    second = registry.register_agent("edged", signed, model)
    assert (first.version, second.version) == (1, 2)
    assert registry.register_agent("edged", signed, model) == second
    assert registry.register_agent("edged", what, model) in (first, second)
    assert registry.agent(second).edge == signed.edge


def test_the_agents_of_a_simulator_are_found_with_their_tags(registry, model):
    what = agent("in it", "a run in it", "a simulator of its own")
    ref = registry.register_agent("in-it", what, model)
    registry.register_agent("in-it", agent("elsewhere", "another run"), model)
    assert what.checkpoint.simulator
    (version,) = registry.versions(kind="agent", simulator=what.checkpoint.simulator)
    found = RegisteredAgent.from_tags(version)
    assert found == RegisteredAgent.of(ref, what)
    assert (found.artifact, found.run, found.edge_digest) == (what.artifact, what.run, None)


@pytest.mark.waits
def test_an_agent_is_not_read_from_garbled_tags(model, tmp_path):
    from agentworld.lineage.mlflow import MlflowRegistry

    registry = MlflowRegistry(make.registry.database(tmp_path), tmp_path / "artifacts")
    what = agent("garbled", "its run", "a simulator whose agent's tags are garbled")
    ref = registry.register_agent("garbled", what, model)
    tag = ref.name, str(ref.version), "agentworld.artifact"
    registry._client.set_model_version_tag(*tag, "no digest")
    assert what.checkpoint.simulator
    (version,) = registry.versions(kind="agent", simulator=what.checkpoint.simulator)
    assert RegisteredAgent.from_tags(version) is None
    assert registry.agents_of("its run") == [ref]


def test_the_versions_of_an_artifact_are_found(registry, model):
    what = world_model("to be found")
    ref = registry.register_world_model("found-world", what, model)
    assert registry.world_models_of(what.artifact) == [ref]


def test_fetching_a_version_copies_every_file(registry, model, tmp_path):
    ref = registry.register_world_model("fetched", world_model("fetched"), model)
    registry.fetch(ref, tmp_path / "copy")
    assert (tmp_path / "copy/weights").read_bytes() == b"weights"
    assert (tmp_path / "copy/nested/config").read_text() == "{}"


def test_the_error_for_a_missing_version_lists_the_existing_versions(registry, model):
    registry.register_agent("known", agent("known", "r"), model)
    with pytest.raises(InputError, match=r"no version 7 of known; versions are 1$"):
        registry.agent(VersionRef(name="known", version=7))


def test_the_error_for_a_missing_name_lists_the_registered_names(registry, model):
    registry.register_agent("known", agent("known", "r"), model)
    with pytest.raises(InputError, match=r"registered as 'unknown'; registered are .*known"):
        registry.agent(VersionRef(name="unknown", version=1))


def test_an_agents_version_is_refused_as_a_world_model(registry, model):
    ref = registry.register_agent("agents", agent("no world", "r"), model)
    with pytest.raises(InputError, match=f"{ref} is not a world model"):
        registry.world_model(ref)


def test_versions_are_listed_in_order_with_tags_and_time(registry, model):
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    what = world_model("glance")
    refs = [registry.register_agent("glance-b", agent("glance", "r8"), model)]
    refs.append(registry.register_agent("glance-b", agent("glance 2", "r8"), model))
    refs.append(registry.register_world_model("glance-a", what, model))
    found = [each for each in registry.versions() if each.ref in refs]
    assert [str(each.ref) for each in found] == ["glance-a@1", "glance-b@1", "glance-b@2"]
    assert all(before <= each.at <= datetime.now(UTC) for each in found)
    assert found[0].tags["artifact"] == what.artifact
    assert registry.versions(kind="agent", run="r8") == found[1:]
    assert registry.version(refs[0]) == found[1]


def test_the_record_and_its_signature_are_stored_unchanged(registry, model):
    what = agent("stored", "r9")
    ref = registry.register_agent("stored", what, model, signature='{"signed":true}')
    stored = registry.stored(ref)
    assert stored.record == what.model_dump_json()
    assert stored.signature == '{"signed":true}'
    assert (stored.version, stored.run, stored.model) == (registry.version(ref), "present", "whole")


def test_an_unsigned_version_has_no_signature(registry, model):
    ref = registry.register_world_model("unsigned", world_model("unsigned"), model)
    assert registry.stored(ref).signature is None


@pytest.mark.waits
def test_a_broken_database_is_a_store_error_with_the_databases_name(tmp_path):
    from agentworld.lineage.mlflow import MlflowRegistry

    (tmp_path / "broken.db").write_text("no database")
    with pytest.raises(StoreError, match=r"the registry sqlite:.*broken\.db failed"):
        MlflowRegistry(f"sqlite:///{tmp_path}/broken.db").agents_of("run")


@pytest.mark.waits
def test_two_registries_in_one_process_are_independent(tmp_path, model, monkeypatch):
    from agentworld.lineage.mlflow import MlflowRegistry

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    one, other = (
        MlflowRegistry(f"sqlite:///{tmp_path}/{name}.db", tmp_path / name) for name in "ab"
    )
    what = world_model("of one")
    ref = one.register_world_model("worlds", what, model)
    assert one.world_model(ref) == what
    assert other.world_models_of(what.artifact) == []
    assert "MLFLOW_TRACKING_URI" not in os.environ


@pytest.mark.waits
def test_the_tags_of_a_version_hold_the_digests_of_every_stage(model, database):
    from mlflow import MlflowClient

    from agentworld.lineage.mlflow import MlflowRegistry

    what = world_model("tagged")
    uri = make.registry.database(database)
    registry = MlflowRegistry(uri, database / "artifacts")
    ref = registry.register_world_model("tagged", what, model)
    tags = MlflowClient(uri, uri).get_model_version(ref.name, str(ref.version)).tags
    assert tags["agentworld.artifact"] == what.artifact
    assert [tags[f"agentworld.{made.stage}.artifact"] for made in what.stages] == [
        made.artifact for made in what.stages
    ]


@pytest.mark.parametrize("text", ["", "agent", "agent@", "@1", "a@b", "a'b@1", "a@1@2"])
def test_a_reference_without_name_or_version_is_refused(text):
    with pytest.raises(InputError, match="is not NAME@VERSION"):
        VersionRef.parse(text)


def test_a_parsed_reference_is_written_unchanged():
    assert str(VersionRef.parse("shell-agent@12")) == "shell-agent@12"


def test_agents_are_listed_newest_first_up_to_the_limit(registry, model):
    refs = [
        registry.register_agent("listed", agent(f"listed {n}", f"run {n}"), model) for n in range(3)
    ]
    registry.register_world_model("listed-world", world_model("listed"), model)
    found = registry.agents(2)
    assert [each.ref for each in found] == [refs[2], refs[1]]
    assert (found[0].tags["run"], found[0].tags["artifact"]) == ("run 2", digest_bytes(b"listed 2"))
    assert found[0].tags["simulator"] == digest_bytes(b"a simulator")


def test_an_alias_names_the_version_set_last_until_its_removal(registry, model):
    first, second = (
        registry.register_agent("aliased", agent(seed, "r"), model) for seed in ("one", "two")
    )
    for ref in (first, second):
        registry.set_alias(ref, "production")
        registry.set_alias(ref, "production")
        assert registry.aliases()["aliased", "production"] == ref.version
    registry.set_alias(first, "trial")
    registry.remove_alias("aliased", "production")
    registry.remove_alias("aliased", "production")
    assert {known: is_ for known, is_ in registry.aliases().items() if known[0] == "aliased"} == {
        ("aliased", "trial"): 1
    }


def test_removing_an_unknown_alias_succeeds(registry):
    registry.remove_alias("nothing", "production")
    assert ("nothing", "production") not in registry.aliases()


def test_versions_are_found_by_their_tags(registry, model):
    ref = registry.register_agent("tagged-agent", agent("by tag", "a run with tags"), model)
    (found,) = registry.versions(kind="agent", run="a run with tags")
    assert (found.ref, found.tags["artifact"]) == (ref, digest_bytes(b"by tag"))
    assert registry.versions(kind="world-model", run="a run with tags") == []


def test_setting_and_removing_a_mark_changes_nothing_else(registry, model):
    what = agent("marked", "a run that is marked")
    ref = registry.register_agent("marked", what, model)

    def tags():
        (found,) = registry.versions(run="a run that is marked")
        return found.tags

    before = tags()
    for value in ("why", "another why", "another why"):
        registry.mark(ref, "revalidate", value)
        assert tags() == before | {"revalidate": value}
    for _ in range(2):
        registry.mark(ref, "revalidate", None)
        assert tags() == before
    assert registry.agent(ref) == what
