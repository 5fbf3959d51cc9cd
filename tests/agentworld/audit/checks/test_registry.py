"""Whether a version is what was registered."""

import pytest

from agentworld.audit.checks.registry import verify_version
from agentworld.audit.checks.statements import registrations
from agentworld.audit.read.evidence import Finding
from agentworld.lineage.base import StoredVersion
from agentworld.lineage.data_input import DataInput
from agentworld.signing.keys import ensure_signer, rotate
from make import records
from make.story import Story, signed_as, story


def verified(told: Story, **changes: object) -> Finding:
    """The verification of the agent, after a change in the registry."""
    stored = told.sources.registry.stored(told.agent)
    changed = StoredVersion.model_validate({**dict(stored), **changes})
    return verify_version(changed, told.sources.registry, told.sources.step_keys)


def tagged(told: Story, **tags: str) -> dict[str, object]:
    version = told.sources.registry.version(told.agent)
    return {"version": version.model_copy(update={"tags": version.tags | tags})}


@pytest.fixture
def told(tmp_path) -> Story:
    return story(tmp_path)


def test_an_unchanged_version_is_verified(told):
    assert verified(told) == Finding(subject="hero@1", grade="verified")


def differs(
    name: str, mirrored: object, signed: object, source: str = "the signed statement says"
) -> str:
    said = f"MLflow says {mirrored!r}, {source} {signed!r}"
    return f"mirror differs in {name}: {said}"


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"run": "deleted"}, ("run state", "deleted", "present")),
        ({"run": "missing"}, ("run state", "missing", "present")),
        ({"model": "FAILED"}, ("model state", "FAILED", "whole")),
        ({"status": "FAILED_REGISTRATION"}, ("status", "FAILED_REGISTRATION", "whole")),
        ({"locations": ("there/", "here")}, ("location", "there", "here")),
    ],
)
def test_a_changed_registry_field_is_reported_with_the_actual_and_expected_value(
    told, changes, difference
):
    assert verified(told, **changes).problems == (
        f"hero@1: {differs(*difference, 'and it should be')}",
    )


def test_a_trailing_slash_in_a_location_is_ignored(told):
    assert verified(told, locations=("here/", "here")).problems == ()


def test_a_missing_record_is_reported(told):
    assert verified(told, record=None).problems == ("hero@1: its record lineage.json is missing",)


@pytest.mark.parametrize("tag", ["kind", "artifact", "run", "simulator", "parents", "recipe"])
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_changed_or_deleted_tag_is_reported_with_its_signed_value(told, tag, is_gone):
    tags = dict(told.sources.registry.version(told.agent).tags)
    signed = tags.pop(tag)
    version = told.sources.registry.version(told.agent)
    changed = tags if is_gone else tags | {tag: "other"}
    found = verified(told, version=version.model_copy(update={"tags": changed}))
    difference = differs(f"tag {tag}", "other", signed)
    wanted = difference.replace("'other'", "nothing") if is_gone else difference
    assert found.problems == (f"hero@1: {wanted}",)
    assert found.grade == "broken"


def test_the_record_gives_the_expected_values_of_an_unsigned_version(tmp_path):
    told = story(tmp_path, signed=False)
    (tmp_path / "agent/model.safetensors").write_text("other")
    of_tag, of_files = verified(told, **tagged(told, run="x")).problems
    assert of_tag == f"hero@1: {differs('tag run', 'x', told.run.id, 'the record says')}"
    assert of_files.endswith(f", the record says {told.run.final_weights!r}")


def test_values_of_a_changed_record_are_not_reported_as_signed(told):
    record = told.sources.registry.agent(told.agent).model_copy(update={"run": "another"})
    _, problem = verified(told, record=record.model_dump_json()).problems
    assert problem == f"hero@1: {differs('tag run', told.run.id, 'another', 'the record says')}"


def test_a_record_counts_as_signed_if_a_registration_statement_has_its_digest(told):
    sources = told.sources
    (statement,) = registrations(
        sources.ledger.attestations, sources.evidence, str(told.agent)
    ).counted
    stored = sources.registry.stored(told.agent).model_copy(
        update={"signature": None, **tagged(told, run="x")}
    )
    found = verify_version(stored, sources.registry, sources.step_keys, registration=statement)
    gone, problem = found.problems
    assert gone == "hero@1: its signature registration.dsse.json is missing"
    assert problem == f"hero@1: {differs('tag run', 'x', told.run.id)}"
    other = statement.model_copy(update={"record": (digest := records.digest("other"))})
    found = verify_version(stored, sources.registry, sources.step_keys, registration=other)
    assert found.problems == (
        gone,
        f"hero@1: {differs('tag run', 'x', told.run.id, 'the record says')}",
        f"hero@1: {differs('record', statement.record, digest)}",
    )


def test_additional_tags_are_no_problem(told):
    assert verified(told, **tagged(told, kubeflow_run="r1")).problems == ()


def test_changed_files_are_reported_with_both_digests(told):
    (told.store / "agent/model.safetensors").write_text("other")
    (problem,) = verified(told).problems
    assert problem.startswith("hero@1: mirror differs in files: MLflow says 'sha256:")
    assert problem.endswith(f", the signed statement says {told.run.final_weights!r}")


def test_an_added_file_is_reported(told):
    (told.store / "agent/chat_template.jinja").write_text("other")
    assert len(verified(told).problems) == 1


def test_a_changed_record_is_reported_as_different_from_the_signed_record(told):
    record = told.sources.registry.agent(told.agent)
    changed = record.model_copy(update={"run": "another"})
    found = verified(told, record=changed.model_dump_json(), **tagged(told, run="another"))
    (problem,) = found.problems
    assert problem.startswith(f"hero@1: what was signed is the record {record.digest} of ")


def test_an_invalid_record_is_reported(told):
    assert "its record cannot be read" in verified(told, record="{}").problems[0]


def test_a_registration_signed_with_an_untrusted_key_is_reported(told):
    stranger = ensure_signer(told.store / "keys/stranger")
    what = told.sources.registry.agent(told.agent)
    (problem,) = verified(told, signature=signed_as("hero", what, stranger)).problems
    assert "is not trusted" in problem


def test_a_registration_signed_for_another_name_is_reported(told):
    signer = ensure_signer(told.store / "keys/steps")
    what = told.sources.registry.agent(told.agent)
    (problem,) = verified(told, signature=signed_as("villain", what, signer)).problems
    assert f"of {what.artifact} as villain, and not" in problem


def test_a_version_signed_with_a_rotated_key_is_verified(told):
    rotate(told.store / "keys/steps")
    assert verified(told).grade == "verified"


def test_an_unsigned_version_is_graded_unsigned_without_problems(tmp_path):
    told = story(tmp_path, signed=False)
    found = verified(told)
    assert (found.grade, found.problems) == ("unsigned", ())


INPUT = DataInput(name="d", shortened="s", source_type="t", source="u", readers="agent")


@pytest.mark.parametrize(
    "change",
    [
        lambda one, _: [one],
        lambda *_: [],
        lambda one, two: [one, two, INPUT],
        lambda one, two: [one, two, two],
        *[
            lambda one, two, name=name: [one.model_copy(update={name: "x"}), two]
            for name in DataInput.model_fields
        ],
    ],
)
def test_data_sets_that_differ_from_the_record_are_reported_with_both_values(told, change):
    stored = told.sources.registry.stored(told.world_model)
    known = told.sources.registry, told.sources.step_keys
    one, two = stored.data
    assert verify_version(stored.model_copy(update={"data": (two, one)}), *known).problems == ()
    data = tuple(change(one, two))
    (problem,) = verify_version(stored.model_copy(update={"data": data}), *known).problems
    mirrored, signed = (", ".join(sorted(map(str, inputs))) for inputs in (data, stored.data))
    wanted = differs("data sets", mirrored, signed).replace("says ''", "says nothing")
    assert problem == f"world@1: {wanted}"
    for item in (one, two):
        for part in (item.name, item.shortened, item.source, item.readers):
            assert part in signed
