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
    checkpoints = tuple(
        records.checkpoint(stage, artifact=digest_bytes(f"{seed} {stage}".encode()))
        for stage in stages
    )
    return WorldModel(stages=checkpoints, report=digest_bytes(b"report"), metrics=metrics)


def agent(seed: str, run: str, simulator: str = "a simulator") -> Agent:
    checkpoint = records.checkpoint(
        "agent", artifact=digest_bytes(seed.encode()), simulator=digest_bytes(simulator.encode())
    )
    return Agent(checkpoint=checkpoint, run=run)


def test_a_version_returns_the_registered_world_model(registry, model):
    world = world_model("leads back", exact_match=0.8)
    assert registry.world_model(registry.register_world_model("worlds", world, model)) == world


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
    record = agent("leads back", "run-7")
    assert registry.agent(registry.register_agent("agents", record, model)) == record


def test_the_agents_of_a_run_are_found(registry, model):
    ref = registry.register_agent("found", agent("found", "a run of its own"), model)
    registry.register_agent("found", agent("other", "another run"), model)
    assert registry.agents_of("a run of its own") == [ref]


def test_an_agent_registered_again_with_an_edge_is_a_new_version(registry, model):
    record = agent("edged", "a run whose edge comes later")
    first = registry.register_agent("edged", record, model)
    claim = Claim(
        agent="edged",
        artifact=record.artifact,
        starting_weights=digest_bytes(b"s"),
        simulator=digest_bytes(b"w"),
    )
    fields = {"claim": claim, "run": record.run, "tenant": "local", "simulator": claim.simulator}
    edge = Edge(**fields, traffic=Traffic(), log_length=1, root=None, grade="proven", at="now")
    signed_record = record.model_copy(update={"edge": SignedEdge(edge=edge, envelope="signed")})
    second = registry.register_agent("edged", signed_record, model)
    assert (first.version, second.version) == (1, 2)
    assert registry.register_agent("edged", signed_record, model) == second
    assert registry.register_agent("edged", record, model) in (first, second)
    assert registry.agent(second).edge == signed_record.edge


def test_the_agents_of_a_simulator_are_found_with_their_tags(registry, model):
    record = agent("in it", "a run in it", "a simulator of its own")
    ref = registry.register_agent("in-it", record, model)
    registry.register_agent("in-it", agent("elsewhere", "another run"), model)
    assert record.checkpoint.simulator
    (version,) = registry.versions(kind="agent", simulator=record.checkpoint.simulator)
    entry = RegisteredAgent.from_tags(version)
    assert entry == RegisteredAgent.of(ref, record)
    assert (entry.artifact, entry.run, entry.edge_digest) == (record.artifact, record.run, None)


@pytest.mark.waits
def test_an_agent_is_not_read_from_garbled_tags(model, tmp_path):
    from agentworld.lineage.mlflow import MlflowRegistry

    registry = MlflowRegistry(make.registry.database(tmp_path), tmp_path / "artifacts")
    record = agent("garbled", "its run", "a simulator whose agent's tags are garbled")
    ref = registry.register_agent("garbled", record, model)
    tag = ref.name, str(ref.version), "agentworld.artifact"
    registry._client.set_model_version_tag(*tag, "no digest")
    assert record.checkpoint.simulator
    (version,) = registry.versions(kind="agent", simulator=record.checkpoint.simulator)
    assert RegisteredAgent.from_tags(version) is None
    assert registry.agents_of("its run") == [ref]


def test_the_versions_of_an_artifact_are_found(registry, model):
    world = world_model("to be found")
    ref = registry.register_world_model("found-world", world, model)
    assert registry.world_models_of(world.artifact) == [ref]


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


def test_versions_are_listed_in_order_with_tags_and_time(registry, model, tmp_path):
    start_time = datetime.now(UTC) - timedelta(milliseconds=1)
    seed = tmp_path.name  # a new one in each repetition, whose versions are newer
    world = world_model(seed)
    refs = [registry.register_agent(f"{seed}-b", agent(seed, run=seed), model)]
    refs.append(registry.register_agent(f"{seed}-b", agent(f"{seed} 2", run=seed), model))
    refs.append(registry.register_world_model(f"{seed}-a", world, model))
    versions = [version for version in registry.versions() if version.ref in refs]
    names = [str(version.ref).removeprefix(seed) for version in versions]
    assert names == ["-a@1", "-b@1", "-b@2"]
    assert all(start_time <= version.at <= datetime.now(UTC) for version in versions)
    assert versions[0].tags["artifact"] == world.artifact
    assert registry.versions(kind="agent", run=seed) == versions[1:]
    assert registry.version(refs[0]) == versions[1]


def test_the_record_and_its_signature_are_stored_unchanged(registry, model):
    record = agent("stored", "r9")
    ref = registry.register_agent("stored", record, model, signature='{"signed":true}')
    entry = registry.stored(ref)
    assert entry.record == record.model_dump_json()
    assert entry.signature == '{"signed":true}'
    assert (entry.version, entry.run, entry.model) == (registry.version(ref), "present", "whole")


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
    registry, other_registry = (
        MlflowRegistry(f"sqlite:///{tmp_path}/{name}.db", tmp_path / name) for name in "ab"
    )
    world = world_model("of one")
    ref = registry.register_world_model("worlds", world, model)
    assert registry.world_model(ref) == world
    assert other_registry.world_models_of(world.artifact) == []
    assert "MLFLOW_TRACKING_URI" not in os.environ


@pytest.mark.waits
def test_the_tags_of_a_version_hold_the_digests_of_every_stage(model, database):
    from mlflow import MlflowClient

    from agentworld.lineage.mlflow import MlflowRegistry

    world = world_model("tagged")
    uri = make.registry.database(database)
    registry = MlflowRegistry(uri, database / "artifacts")
    ref = registry.register_world_model("tagged", world, model)
    tags = MlflowClient(uri, uri).get_model_version(ref.name, str(ref.version)).tags
    assert tags["agentworld.artifact"] == world.artifact
    assert [tags[f"agentworld.{stage.stage}.artifact"] for stage in world.stages] == [
        stage.artifact for stage in world.stages
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
    rows = registry.agents(2)
    assert [row.ref for row in rows] == [refs[2], refs[1]]
    assert (rows[0].tags["run"], rows[0].tags["artifact"]) == ("run 2", digest_bytes(b"listed 2"))
    assert rows[0].tags["simulator"] == digest_bytes(b"a simulator")


@pytest.mark.parametrize("tag", ["artifact", "run", "simulator"])
def test_a_version_without_a_tag_of_an_agent_takes_no_place_among_the_newest(registry, model, tag):
    name = f"without-{tag}"
    first, second, newest = (
        registry.register_agent(name, agent(f"{name} {n}", f"run {n}"), model) for n in range(3)
    )
    registry.mark(newest, tag, None)
    assert [row.ref for row in registry.agents(2)] == [second, first]


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
    assert {key: version for key, version in registry.aliases().items() if key[0] == "aliased"} == {
        ("aliased", "trial"): 1
    }


def test_removing_an_unknown_alias_succeeds(registry):
    registry.remove_alias("nothing", "production")
    assert ("nothing", "production") not in registry.aliases()


def test_versions_are_found_by_their_tags(registry, model):
    ref = registry.register_agent("tagged-agent", agent("by tag", "a run with tags"), model)
    (version,) = registry.versions(kind="agent", run="a run with tags")
    assert (version.ref, version.tags["artifact"]) == (ref, digest_bytes(b"by tag"))
    assert registry.versions(kind="world-model", run="a run with tags") == []


def test_setting_and_removing_a_mark_changes_nothing_else(registry, model):
    record = agent("marked", "a run that is marked")
    ref = registry.register_agent("marked", record, model)

    def tags():
        (version,) = registry.versions(run="a run that is marked")
        return version.tags

    initial_tags = tags()
    for value in ("why", "another why", "another why"):
        registry.mark(ref, "revalidate", value)
        assert tags() == initial_tags | {"revalidate": value}
    for _ in range(2):
        registry.mark(ref, "revalidate", None)
        assert tags() == initial_tags
    assert registry.agent(ref) == record
