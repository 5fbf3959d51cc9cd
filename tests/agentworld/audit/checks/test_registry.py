"""Whether a version is what was registered."""

import pytest

from agentworld.audit.checks.registry import verify_version
from agentworld.audit.read.evidence import Finding
from agentworld.lineage.base import StoredVersion
from agentworld.lineage.data_input import DataInput
from agentworld.signing.keys import ensure_signer, rotate
from make.story import Story, signed_as, story


def verified(told: Story, **changes: object) -> Finding:
    """Of the agent, where the registry's own keeper changed this."""
    stored = told.sources.registry.stored(told.agent)
    changed = StoredVersion.model_validate({**dict(stored), **changes})
    return verify_version(changed, told.sources.registry, told.sources.step_keys)


def tagged(told: Story, **tags: str) -> dict[str, object]:
    version = told.sources.registry.version(told.agent)
    return {"version": version.model_copy(update={"tags": version.tags | tags})}


@pytest.fixture
def told(tmp_path) -> Story:
    return story(tmp_path)


def test_what_nobody_touched_has_no_problem(told):
    assert verified(told) == Finding(subject="hero@1", grade="verified")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"run": "deleted"}, "hero@1: the run that registered it is deleted"),
        ({"run": "missing"}, "hero@1: the run that registered it is missing"),
        ({"model": "FAILED"}, "hero@1: its model is FAILED, and not whole"),
        ({"record": None}, "hero@1: its record lineage.json is gone"),
        (
            {"status": "FAILED_REGISTRATION"},
            "hero@1: its status is FAILED_REGISTRATION, and not whole",
        ),
    ],
)
def test_what_is_gone_is_said(told, changes, problem):
    assert problem in verified(told, **changes).problems


@pytest.mark.parametrize("tag", ["kind", "artifact", "run", "simulator", "parents", "recipe"])
def test_an_edited_tag_is_said_with_what_it_should_say(told, tag):
    right = told.sources.registry.version(told.agent).tags[tag]
    found = verified(told, **tagged(told, **{tag: "other"}))
    assert found.problems == (f"hero@1: its tag {tag} says 'other', and its record {right!r}",)
    assert found.grade == "broken"


def test_tags_that_others_added_are_no_problem(told):
    assert verified(told, **tagged(told, kubeflow_run="r1")).problems == ()


def test_files_that_were_changed_are_said_with_both_digests(told):
    (told.store / "agent/model.safetensors").write_text("other")
    (problem,) = verified(told).problems
    assert problem.startswith("hero@1: its files are sha256:")
    assert problem.endswith(f"its record names {told.run.final_weights}")


def test_a_file_that_was_added_is_found(told):
    (told.store / "agent/chat_template.jinja").write_text("other")
    assert len(verified(told).problems) == 1


def test_a_record_that_was_changed_is_not_the_one_that_was_signed(told):
    record = told.sources.registry.agent(told.agent)
    changed = record.model_copy(update={"run": "another"})
    found = verified(told, record=changed.model_dump_json(), **tagged(told, run="another"))
    (problem,) = found.problems
    assert problem.startswith(f"hero@1: what was signed is the record {record.digest} of ")


def test_a_record_that_is_none_is_said(told):
    assert "its record cannot be read" in verified(told, record="{}").problems[0]


def test_who_holds_no_key_of_a_step_cannot_sign_a_changed_record(told):
    stranger = ensure_signer(told.store / "keys/stranger")
    what = told.sources.registry.agent(told.agent)
    (problem,) = verified(told, signature=signed_as("hero", what, stranger)).problems
    assert "is not trusted" in problem


def test_the_statement_of_another_name_does_not_do(told):
    signer = ensure_signer(told.store / "keys/steps")
    what = told.sources.registry.agent(told.agent)
    (problem,) = verified(told, signature=signed_as("villain", what, signer)).problems
    assert f"of {what.artifact} as villain, and not" in problem


def test_a_key_that_was_rotated_since_still_proves(told):
    rotate(told.store / "keys/steps")
    assert verified(told).grade == "verified"


def test_a_version_from_before_there_were_signatures_is_unsigned_and_no_problem(tmp_path):
    told = story(tmp_path, signed=False)
    stored = told.sources.registry.stored(told.world_model)
    older = {tag: each for tag, each in stored.version.tags.items() if not tag.endswith(".data")}
    version = stored.version.model_copy(update={"tags": older})
    found = verify_version(
        stored.model_copy(update={"version": version}), told.sources.registry, {}
    )
    assert (found.grade, found.problems) == ("unsigned", ())


INPUT = DataInput(name="d", shortened="s", source_type="t", source="u", readers="agent")


def inputs(told: Story, *data: DataInput) -> list[str]:
    """Of the world model, where its run has these."""
    stored = told.sources.registry.stored(told.world_model).model_copy(update={"data": data})
    keys = told.sources.step_keys
    return [*verify_version(stored, told.sources.registry, keys).problems]


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        (lambda one, two: [one, two], []),
        (lambda one, two: [two, one], []),
        (lambda one, _: [one], ["lacks an input: the data set {two}, which sft rl read"]),
        (lambda *_: [], ["data set {one}, which cpt read", "data set {two}, which sft rl read"]),
        (
            lambda one, two: [one, two, INPUT],
            ["an input that its record does not: the data set d, digest s, source t u, read by"],
        ),
        (
            lambda one, two: [one, two, two],
            ["an input that its record does not: the data set {two}"],
        ),
        *[
            (
                lambda one, two, name=name: [one.model_copy(update={name: "x"}), two],
                ["lacks an input: the data set {one}", "has an input that its record does not"],
            )
            for name in DataInput.model_fields
        ],
    ],
)
def test_inputs_are_what_the_record_says(told, change, problems):
    one, two = told.sources.registry.stored(told.world_model).data
    found = inputs(told, *change(one, two))
    assert len(found) == len(problems)
    for problem, words in zip(found, problems, strict=True):
        assert problem.startswith("world@1: its run ")
        assert words.format(one=one.name, two=two.name) in problem


def test_a_version_of_before_there_were_inputs_has_none(tmp_path):
    told = story(tmp_path, signed=False)
    assert inputs(told) == []
    assert len(inputs(told, INPUT)) == 3


def test_files_in_two_places_are_said(told):
    assert verified(told, locations=("here/", "here")).problems == ()
    (problem,) = verified(told, locations=("there", "here")).problems
    assert problem == ("hero@1: its files are told to be in there, and its model's are in here")


def test_a_signed_version_has_all_its_tags(told):
    stored = told.sources.registry.stored(told.world_model)
    tags = {tag: each for tag, each in stored.version.tags.items() if tag != "cpt.data"}
    version = stored.version.model_copy(update={"tags": tags})
    changed = stored.model_copy(update={"version": version})
    (problem,) = verify_version(changed, told.sources.registry, told.sources.step_keys).problems
    assert problem.startswith("world@1: its tag cpt.data says None, and its record 'sha256:")
