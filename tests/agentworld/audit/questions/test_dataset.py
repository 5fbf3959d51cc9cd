"""The uses of a data set."""

import pytest

from agentworld.audit.questions.dataset import audit_dataset
from agentworld.errors import InputError, NotFound
from agentworld.lineage.base import WorldModel
from make import records
from make.story import DATA, EARLY_DATA, story


def test_data_leads_to_world_models_their_simulators_and_their_agents(tmp_path):
    told = story(tmp_path)
    found = audit_dataset(DATA, told.sources)
    (reader,), (served,) = found.world_models, found.simulators
    assert (reader.world_model, reader.stages) == ("world@1", ("sft", "rl"))
    assert (served.simulator, served.world_model) == (told.simulator, "world@1")
    (made,) = served.agents
    assert (made.agent, made.run.id) == ("hero@1", told.run.id)
    assert (made.run.num_episodes, made.run.num_steps) == (1, 2)
    assert found.at is None


@pytest.mark.parametrize("tags", [["sft.data", "rl.data"], ["rl.artifact"], ["artifact"]])
def test_a_tag_that_was_deleted_takes_no_signed_version_out_of_the_answer(tmp_path, tags):
    told = story(tmp_path)
    before = [audit_dataset(data, told.sources) for data in (DATA, EARLY_DATA)]
    for tag in tags:
        told.sources.registry.mark(told.world_model, tag, None)
    assert [audit_dataset(data, told.sources) for data in (DATA, EARLY_DATA)] == before


def test_all_tags_of_stages_that_were_deleted_are_read_from_the_record(tmp_path):
    told = story(tmp_path)
    for tag in [*told.sources.registry.version(told.world_model).tags]:
        if "." in tag:
            told.sources.registry.mark(told.world_model, tag, None)
    assert audit_dataset(DATA, told.sources).world_models[0].stages == ("sft", "rl")


def test_of_a_version_that_no_step_signed_the_tags_say_what_it_read(tmp_path):
    told = story(tmp_path, signed=False)
    told.sources.registry.mark(told.world_model, "cpt.data", None)
    with pytest.raises(NotFound):
        audit_dataset(EARLY_DATA, told.sources)


def test_a_stage_that_read_other_data_is_told_apart(tmp_path):
    (reader,) = audit_dataset(EARLY_DATA, story(tmp_path).sources).world_models
    assert reader.stages == ("cpt",)


def test_data_leads_on_to_what_started_from_a_version_that_read_it(tmp_path):
    told = story(tmp_path)
    (first,) = told.sources.versions(kind="world-model")
    base, own = first.tags["artifact"], records.digest("own data")
    for name in ("later", "latest"):
        stage = records.checkpoint("sft", artifact=records.digest(name), parents=[base], data=own)
        what = WorldModel(stages=(stage,), report=records.digest("report"))
        told.sources.registry.register_world_model(name, what, tmp_path / "model")
        base = stage.artifact
    latest = records.pinned(tmp_path, artifact=base).digest
    found = audit_dataset(DATA, told.sources)
    assert [(each.world_model, each.stages, each.base) for each in found.world_models] == [
        ("later@1", (), "world@1"),
        ("latest@1", (), "world@1"),
        ("world@1", ("sft", "rl"), None),
    ]
    assert latest in {each.simulator for each in found.simulators}


def test_what_started_from_an_earlier_stage_has_the_data_of_that_stage_alone(tmp_path):
    told = story(tmp_path)
    (first,) = told.sources.versions(kind="world-model")
    parents, own = [first.tags["cpt.artifact"]], records.digest("own data")
    stage = records.checkpoint("sft", artifact=records.digest("l"), parents=parents, data=own)
    later = WorldModel(stages=(stage,), report=records.digest("report"))
    told.sources.registry.register_world_model("later", later, tmp_path / "model")
    readers = {
        data: {reader.world_model for reader in audit_dataset(data, told.sources).world_models}
        for data in (EARLY_DATA, DATA, own)
    }
    assert readers == {EARLY_DATA: {"later@1", "world@1"}, DATA: {"world@1"}, own: {"later@1"}}


@pytest.mark.parametrize("start", [DATA[:20], DATA[7:20]])
def test_the_start_of_a_digest_is_enough(tmp_path, start):
    assert audit_dataset(start, story(tmp_path).sources).data == DATA


def test_data_that_nobody_read_yet_has_gone_nowhere(tmp_path):
    told, prepared = story(tmp_path), records.digest("prepared")
    records.finished_step(tmp_path, "prepare", prepared)
    found = audit_dataset(prepared, told.sources)
    assert (found.world_models, found.simulators) == ((), ())


def test_unknown_data_is_answered_with_what_is_there(tmp_path):
    with pytest.raises(NotFound, match=f"no data set sha256:00 .*{EARLY_DATA}"):
        audit_dataset("00", story(tmp_path).sources)


def test_the_start_of_two_digests_is_refused(tmp_path):
    with pytest.raises(InputError, match="sha256: is the start of .*; give more characters"):
        audit_dataset("sha256:", story(tmp_path).sources)
