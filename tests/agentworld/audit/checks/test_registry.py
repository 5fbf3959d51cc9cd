"""Verification of a version against its registration."""

import pytest

from agentworld.audit.checks.registry import verify_version
from agentworld.audit.checks.statements import registrations
from agentworld.audit.read.evidence import Finding
from agentworld.lineage.base import StoredVersion
from agentworld.lineage.data_input import DataInput
from agentworld.signing.keys import ensure_signer, rotate
from make import records
from make.story import Story, signed_as, story


def verify(history: Story, **changes: object) -> Finding:
    """Verifies the agent after changes in the registry."""
    stored = history.sources.registry.stored(history.agent)
    changed_version = StoredVersion.model_validate({**dict(stored), **changes})
    return verify_version(changed_version, history.sources.registry, history.sources.step_keys)


def tag_changes(history: Story, **tags: str) -> dict[str, object]:
    version = history.sources.registry.version(history.agent)
    return {"version": version.model_copy(update={"tags": version.tags | tags})}


@pytest.fixture
def history(tmp_path) -> Story:
    return story(tmp_path)


def test_an_unchanged_version_is_verified(history):
    assert verify(history) == Finding(subject="hero@1", grade="verified")


def describe(
    name: str,
    mirrored_value: object,
    signed_value: object,
    source: str = "the signed statement says",
) -> str:
    detail = f"MLflow says {mirrored_value!r}, {source} {signed_value!r}"
    return f"mirror differs in {name}: {detail}"


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
    history, changes, difference
):
    assert verify(history, **changes).problems == (
        f"hero@1: {describe(*difference, 'and it should be')}",
    )


def test_a_trailing_slash_in_a_location_is_ignored(history):
    assert verify(history, locations=("here/", "here")).problems == ()


def test_a_missing_record_is_reported(history):
    assert verify(history, record=None).problems == ("hero@1: its record lineage.json is missing",)


@pytest.mark.parametrize("tag", ["kind", "artifact", "run", "simulator", "parents", "recipe"])
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_changed_or_deleted_tag_is_reported_with_its_signed_value(history, tag, is_gone):
    tags = dict(history.sources.registry.version(history.agent).tags)
    signed_value = tags.pop(tag)
    version = history.sources.registry.version(history.agent)
    changed_tags = tags if is_gone else tags | {tag: "other"}
    finding = verify(history, version=version.model_copy(update={"tags": changed_tags}))
    difference = describe(f"tag {tag}", "other", signed_value)
    expected = difference.replace("'other'", "nothing") if is_gone else difference
    assert finding.problems == (f"hero@1: {expected}",)
    assert finding.grade == "broken"


def test_the_record_gives_the_expected_values_of_an_unsigned_version(tmp_path):
    history = story(tmp_path, signed=False)
    (tmp_path / "agent/model.safetensors").write_text("other")
    tag_problem, files_problem = verify(history, **tag_changes(history, run="x")).problems
    assert tag_problem == f"hero@1: {describe('tag run', 'x', history.run.id, 'the record says')}"
    assert files_problem.endswith(f", the record says {history.run.final_weights!r}")


def test_values_of_a_changed_record_are_not_reported_as_signed(history):
    record = history.sources.registry.agent(history.agent).model_copy(update={"run": "another"})
    _, problem = verify(history, record=record.model_dump_json()).problems
    assert problem == f"hero@1: {describe('tag run', history.run.id, 'another', 'the record says')}"


def test_a_record_counts_as_signed_if_a_registration_statement_has_its_digest(history):
    sources = history.sources
    (statement,) = registrations(
        sources.ledger.attestations, sources.evidence, str(history.agent)
    ).counted
    stored = sources.registry.stored(history.agent).model_copy(
        update={"signature": None, **tag_changes(history, run="x")}
    )
    finding = verify_version(stored, sources.registry, sources.step_keys, registration=statement)
    missing_signature, problem = finding.problems
    assert missing_signature == "hero@1: its signature registration.dsse.json is missing"
    assert problem == f"hero@1: {describe('tag run', 'x', history.run.id)}"
    other_statement = statement.model_copy(update={"record": (digest := records.digest("other"))})
    finding = verify_version(
        stored, sources.registry, sources.step_keys, registration=other_statement
    )
    assert finding.problems == (
        missing_signature,
        f"hero@1: {describe('tag run', 'x', history.run.id, 'the record says')}",
        f"hero@1: {describe('record', statement.record, digest)}",
    )


def test_additional_tags_are_no_problem(history):
    assert verify(history, **tag_changes(history, kubeflow_run="r1")).problems == ()


def test_changed_files_are_reported_with_both_digests(history):
    (history.store / "agent/model.safetensors").write_text("other")
    (problem,) = verify(history).problems
    assert problem.startswith("hero@1: mirror differs in files: MLflow says 'sha256:")
    assert problem.endswith(f", the signed statement says {history.run.final_weights!r}")


def test_an_added_file_is_reported(history):
    (history.store / "agent/chat_template.jinja").write_text("other")
    assert len(verify(history).problems) == 1


def test_a_changed_record_is_reported_as_different_from_the_signed_record(history):
    record = history.sources.registry.agent(history.agent)
    changed_record = record.model_copy(update={"run": "another"})
    finding = verify(
        history, record=changed_record.model_dump_json(), **tag_changes(history, run="another")
    )
    (problem,) = finding.problems
    assert problem.startswith(f"hero@1: what was signed is the record {record.digest} of ")


def test_an_invalid_record_is_reported(history):
    assert "its record cannot be read" in verify(history, record="{}").problems[0]


def test_a_registration_signed_with_an_untrusted_key_is_reported(history):
    untrusted_signer = ensure_signer(history.store / "keys/stranger")
    agent = history.sources.registry.agent(history.agent)
    (problem,) = verify(history, signature=signed_as("hero", agent, untrusted_signer)).problems
    assert "is not trusted" in problem


def test_a_registration_signed_for_another_name_is_reported(history):
    signer = ensure_signer(history.store / "keys/steps")
    agent = history.sources.registry.agent(history.agent)
    (problem,) = verify(history, signature=signed_as("villain", agent, signer)).problems
    assert f"of {agent.artifact} as villain, and not" in problem


def test_a_version_signed_with_a_rotated_key_is_verified(history):
    rotate(history.store / "keys/steps")
    assert verify(history).grade == "verified"


def test_an_unsigned_version_is_graded_unsigned_without_problems(tmp_path):
    history = story(tmp_path, signed=False)
    finding = verify(history)
    assert (finding.grade, finding.problems) == ("unsigned", ())


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
def test_data_sets_that_differ_from_the_record_are_reported_with_both_values(history, change):
    stored = history.sources.registry.stored(history.world_model)
    arguments = history.sources.registry, history.sources.step_keys
    one, two = stored.data
    assert verify_version(stored.model_copy(update={"data": (two, one)}), *arguments).problems == ()
    data = tuple(change(one, two))
    (problem,) = verify_version(stored.model_copy(update={"data": data}), *arguments).problems
    mirrored_data, signed_data = (
        ", ".join(sorted(map(str, inputs))) for inputs in (data, stored.data)
    )
    expected = describe("data sets", mirrored_data, signed_data).replace("says ''", "says nothing")
    assert problem == f"world@1: {expected}"
    for item in (one, two):
        for part in (item.name, item.shortened, item.source, item.readers):
            assert part in signed_data
