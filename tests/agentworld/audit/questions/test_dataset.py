"""The uses of a data set."""

import pytest

from agentworld.audit.questions.dataset import audit_dataset
from agentworld.errors import InputError, NotFound
from agentworld.lineage.base import WorldModel
from make import records
from make.story import DATA, EARLY_DATA, story


def test_data_leads_to_world_models_their_simulators_and_their_agents(tmp_path):
    history = story(tmp_path)
    audit = audit_dataset(DATA, history.sources)
    (reader,), (served_reader,) = audit.world_models, audit.simulators
    assert (reader.world_model, reader.stages) == ("world@1", ("sft", "rl"))
    assert (served_reader.simulator, served_reader.world_model) == (history.simulator, "world@1")
    (agent,) = served_reader.agents
    assert (agent.agent, agent.run.id) == ("hero@1", history.run.id)
    assert (agent.run.num_episodes, agent.run.num_steps) == (1, 2)
    assert audit.at is None


@pytest.mark.parametrize("tags", [["sft.data", "rl.data"], ["rl.artifact"], ["artifact"]])
def test_deleting_tags_of_a_signed_version_does_not_change_the_audit(tmp_path, tags):
    history = story(tmp_path)
    before = [audit_dataset(data, history.sources) for data in (DATA, EARLY_DATA)]
    for tag in tags:
        history.sources.registry.mark(history.world_model, tag, None)
    assert [audit_dataset(data, history.sources) for data in (DATA, EARLY_DATA)] == before


def test_stages_are_read_from_the_record_if_their_tags_are_deleted(tmp_path):
    history = story(tmp_path)
    for tag in [*history.sources.registry.version(history.world_model).tags]:
        if "." in tag:
            history.sources.registry.mark(history.world_model, tag, None)
    assert audit_dataset(DATA, history.sources).world_models[0].stages == ("sft", "rl")


def test_the_data_of_an_unsigned_version_is_read_from_its_tags(tmp_path):
    history = story(tmp_path, signed=False)
    history.sources.registry.mark(history.world_model, "cpt.data", None)
    with pytest.raises(NotFound):
        audit_dataset(EARLY_DATA, history.sources)


def test_only_the_stages_that_read_the_data_are_listed(tmp_path):
    (reader,) = audit_dataset(EARLY_DATA, story(tmp_path).sources).world_models
    assert reader.stages == ("cpt",)


def test_world_models_that_started_from_a_reader_of_the_data_are_listed(tmp_path):
    history = story(tmp_path)
    (first,) = history.sources.versions(kind="world-model")
    base, own_data = first.tags["artifact"], records.digest("own data")
    for name in ("later", "latest"):
        stage = records.checkpoint(
            "sft", artifact=records.digest(name), parents=[base], data=own_data
        )
        world_model = WorldModel(stages=(stage,), report=records.digest("report"))
        history.sources.registry.register_world_model(name, world_model, tmp_path / "model")
        base = stage.artifact
    simulator = records.pinned(tmp_path, artifact=base).digest
    audit = audit_dataset(DATA, history.sources)
    assert [(reader.world_model, reader.stages, reader.base) for reader in audit.world_models] == [
        ("later@1", (), "world@1"),
        ("latest@1", (), "world@1"),
        ("world@1", ("sft", "rl"), None),
    ]
    assert simulator in {reader.simulator for reader in audit.simulators}


def test_a_world_model_inherits_only_the_data_of_its_starting_stage(tmp_path):
    history = story(tmp_path)
    (first,) = history.sources.versions(kind="world-model")
    parents, own_data = [first.tags["cpt.artifact"]], records.digest("own data")
    stage = records.checkpoint("sft", artifact=records.digest("l"), parents=parents, data=own_data)
    later_model = WorldModel(stages=(stage,), report=records.digest("report"))
    history.sources.registry.register_world_model("later", later_model, tmp_path / "model")
    readers = {
        data: {reader.world_model for reader in audit_dataset(data, history.sources).world_models}
        for data in (EARLY_DATA, DATA, own_data)
    }
    assert readers == {EARLY_DATA: {"later@1", "world@1"}, DATA: {"world@1"}, own_data: {"later@1"}}


@pytest.mark.parametrize("start", [DATA[:20], DATA[7:20]])
def test_a_digest_prefix_finds_the_data_set(tmp_path, start):
    assert audit_dataset(start, story(tmp_path).sources).data == DATA


def test_unread_data_has_no_world_models_and_no_simulators(tmp_path):
    history, digest = story(tmp_path), records.digest("prepared")
    records.finished_step(tmp_path, "prepare", digest)
    audit = audit_dataset(digest, history.sources)
    assert (audit.world_models, audit.simulators) == ((), ())


def test_the_error_for_an_unknown_data_set_lists_existing_data_sets(tmp_path):
    with pytest.raises(NotFound, match=f"no data set sha256:00 .*{EARLY_DATA}"):
        audit_dataset("00", story(tmp_path).sources)


def test_an_ambiguous_digest_prefix_is_rejected(tmp_path):
    with pytest.raises(InputError, match="sha256: is the start of .*; give more characters"):
        audit_dataset("sha256:", story(tmp_path).sources)
