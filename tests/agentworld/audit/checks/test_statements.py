"""Versions that a step registered, and signed for the ledger."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from agentworld.audit.checks.store import verify_agent, verify_everything
from agentworld.records.base import now
from agentworld.records.statements.registration import Links, RegisteredVersion
from agentworld.signing.keys import rotate
from make import records
from make.statement import file, registered
from make.story import Story, story, without

pytestmark = pytest.mark.compute

REFS = ("hero@1", "world@1")


@pytest.fixture
def history(tmp_path) -> Story:
    return story(tmp_path)


def find_problems(history: Story) -> list[str]:
    return [*verify_everything(history.sources).problems]


@pytest.mark.parametrize("ref", REFS)
def test_a_version_missing_from_the_registry_is_reported(history, ref):
    (problem,) = find_problems(without(history, ref))
    assert problem.startswith(f"{ref}: mirror differs in version: MLflow says nothing, the signed")


@pytest.mark.parametrize("ref", REFS)
def test_a_version_with_deleted_tags_is_reported(history, ref, monkeypatch):
    """No search finds the version, as its tags are missing."""
    registry = history.sources.registry
    hidden_ref = history.agent if ref == "hero@1" else history.world_model
    versions, stored = registry.versions(), registry.stored(hidden_ref)
    version = stored.version.model_copy(update={"tags": {}})
    monkeypatch.setattr(
        registry, "versions", lambda **_: [row for row in versions if row.ref != hidden_ref]
    )
    original = registry.stored
    monkeypatch.setattr(
        registry,
        "stored",
        lambda version_ref: (
            stored.model_copy(update={"version": version})
            if version_ref == hidden_ref
            else original(version_ref)
        ),
    )
    assert find_problems(history) == [
        f"{ref}: mirror differs in tag {tag}: MLflow says nothing, the signed statement says"
        f" {value!r}"
        for tag, value in stored.version.tags.items()
    ]


@pytest.mark.parametrize(
    ("link", "value", "signed"),
    [
        ("run", "r", "'run of {ref}'"),
        ("model", "m", "'model of {ref}'"),
        ("inputs", ("m",), "{inputs}"),
    ],
)
@pytest.mark.parametrize("ref", REFS)
def test_a_version_with_a_changed_link_is_reported(history, ref, link, value, signed, monkeypatch):
    registry = history.sources.registry
    original = registry.stored
    inputs = {"hero@1": f"'model of {history.world_model}'"}.get(ref, "nothing")

    def stored_with_link(version_ref):
        stored = original(version_ref)
        links = Links.model_validate({**dict(stored.links), link: value})
        return stored.model_copy(update={"links": links} if str(version_ref) == ref else {})

    monkeypatch.setattr(registry, "stored", stored_with_link)
    problems = find_problems(history)
    assert problems == [
        f"{ref}: mirror differs in {link}: MLflow says {value[0]!r}, the signed statement says"
        f" {signed.format(ref=ref, inputs=inputs)}"
    ]
    agent_problems = verify_agent(history.agent, history.sources).problems  # and of its world model
    assert list(agent_problems) == problems


def test_two_swapped_versions_are_both_reported(history, monkeypatch):
    registry = history.sources.registry
    agent = history.sources.registry.agent(history.agent)
    checkpoint = agent.checkpoint.model_copy(update={"metrics": {"reward": 1.0}})
    other_agent = agent.model_copy(update={"checkpoint": checkpoint})
    other_ref = registered("hero2", other_agent, history.store / "agent", registry, history.store)
    stored_agent, stored_other = registry.stored(history.agent), registry.stored(other_ref)
    swapped = {history.agent: stored_other, other_ref: stored_agent}
    original = registry.stored
    monkeypatch.setattr(
        registry,
        "stored",
        lambda version_ref: (
            swapped[version_ref].model_copy(update={"version": registry.version(version_ref)})
            if version_ref in swapped
            else original(version_ref)
        ),
    )
    problems = find_problems(history)
    for ref in ("hero@1", "hero2@1"):
        assert any(problem.startswith(f"{ref}: mirror differs in record: ") for problem in problems)


def test_a_deleted_version_whose_number_was_reused_is_still_reported(history):
    """The version was deleted before the next one was registered."""
    incomplete = without(history, "hero@1")
    registry = incomplete.sources.registry
    agent = history.sources.registry.agent(history.agent)
    checkpoint = agent.checkpoint.model_copy(update={"metrics": {"reward": 1.0}})
    other_agent = agent.model_copy(update={"checkpoint": checkpoint})
    registered("hero", other_agent, history.store / "agent", registry, history.store)
    (problem,) = find_problems(incomplete)
    assert problem.startswith("hero@1: mirror differs in version: MLflow says nothing")


@pytest.mark.parametrize("ref", REFS)
def test_a_deleted_registration_statement_is_reported_from_its_mirror_copy(history, ref):
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        statement = "DELETE FROM attestations WHERE subject = ?"
        assert database.execute(statement, [ref]).rowcount == 1
    (problem,) = find_problems(history)
    assert f" of {ref}" in problem
    assert problem.endswith("is gone from the ledger; restore it")
    assert problem in verify_agent(history.agent, history.sources).problems


def test_a_deleted_registration_statement_is_reported_only_for_its_version(history):
    links, digest = Links(run="another"), records.digest("another")
    fields = {"registered_as": "hero", "version": 2, "artifact": digest, "run": ""}
    file(RegisteredVersion(record=digest, links=links, at=now(), **fields), history.store)
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        database.execute("DELETE FROM attestations WHERE subject = 'hero@2'")
    assert verify_agent(history.agent, history.sources).problems == ()
    (problem,) = find_problems(history)
    assert problem.endswith(" of hero@2 is gone from the ledger; restore it")


@pytest.mark.parametrize("ref", REFS)
def test_a_deleted_statement_is_not_reported_at_a_time_before_its_signing(history, ref):
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        database.execute("DELETE FROM attestations WHERE subject = ?", [ref])
    assert verify_everything(history.at("before")).problems == ()


@pytest.mark.parametrize("ref", REFS)
def test_a_registration_row_with_another_versions_envelope_is_reported(history, ref):
    other_ref = next(name for name in REFS if name != ref)
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        database.execute(
            "UPDATE attestations SET envelope = (SELECT envelope FROM attestations"
            " WHERE subject = ?) WHERE subject = ?",
            [other_ref, ref],
        )
    problems = find_problems(history)
    assert any(f" of {ref}" in problem and "evidence mirror" in problem for problem in problems)
    assert any(
        "does not verify: its row differs from what was signed" in problem for problem in problems
    )


def test_versions_without_registration_statements_are_unsigned_without_problems(history):
    with closing(sqlite3.connect(history.store / "ledger.db")) as database, database:
        database.execute("DELETE FROM attestations")
    shutil.rmtree(history.store / "mirror/registered-versions")
    verification = verify_everything(history.sources)
    assert (verification.problems, verification.num_unsigned) == ((), 2)
    assert {finding.grade for finding in verification.versions} == {"unsigned"}


def test_registering_a_version_again_adds_no_second_statement(history):
    agent = history.sources.registry.agent(history.agent)
    model = history.store / "agent"
    rotate(history.store / "keys/steps")
    assert (
        registered("hero", agent, model, history.sources.registry, history.store) == history.agent
    )
    statements = history.sources.ledger.attestations.find("registration", subject="hero@1")
    assert len(statements) == 1
    assert find_problems(history) == []


def test_registering_an_existing_unsigned_version_does_not_sign_the_version(history):
    agent = history.sources.registry.agent(history.agent)
    registry = history.sources.registry
    ref = registry.register_agent("planted", agent, history.store / "agent")
    assert registered("planted", agent, history.store / "agent", registry, history.store) == ref
    assert history.sources.ledger.attestations.find("registration", subject=str(ref)) == []
