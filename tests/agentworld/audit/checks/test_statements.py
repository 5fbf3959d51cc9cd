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
def told(tmp_path) -> Story:
    return story(tmp_path)


def problems(told: Story) -> list[str]:
    return [*verify_everything(told.sources).problems]


@pytest.mark.parametrize("ref", REFS)
def test_a_version_missing_from_the_registry_is_reported(told, ref):
    (problem,) = problems(without(told, ref))
    assert problem.startswith(f"{ref}: mirror differs in version: MLflow says nothing, the signed")


@pytest.mark.parametrize("ref", REFS)
def test_a_version_with_deleted_tags_is_reported(told, ref, monkeypatch):
    """Its tags are missing, so that no search finds it."""
    registry = told.sources.registry
    hidden = told.agent if ref == "hero@1" else told.world_model
    shown, stored = registry.versions(), registry.stored(hidden)
    version = stored.version.model_copy(update={"tags": {}})
    monkeypatch.setattr(
        registry, "versions", lambda **_: [each for each in shown if each.ref != hidden]
    )
    original = registry.stored
    monkeypatch.setattr(
        registry,
        "stored",
        lambda of: stored.model_copy(update={"version": version}) if of == hidden else original(of),
    )
    assert problems(told) == [
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
def test_a_version_with_a_changed_link_is_reported(told, ref, link, value, signed, monkeypatch):
    registry = told.sources.registry
    original = registry.stored
    inputs = {"hero@1": f"'model of {told.world_model}'"}.get(ref, "nothing")

    def linked(of):
        found = original(of)
        links = Links.model_validate({**dict(found.links), link: value})
        return found.model_copy(update={"links": links} if str(of) == ref else {})

    monkeypatch.setattr(registry, "stored", linked)
    found = problems(told)
    assert found == [
        f"{ref}: mirror differs in {link}: MLflow says {value[0]!r}, the signed statement says"
        f" {signed.format(ref=ref, inputs=inputs)}"
    ]
    ours = verify_agent(told.agent, told.sources).problems  # the world model is in its chain
    assert list(ours) == found


def test_two_swapped_versions_are_both_reported(told, monkeypatch):
    registry = told.sources.registry
    agent = told.sources.registry.agent(told.agent)
    checkpoint = agent.checkpoint.model_copy(update={"metrics": {"reward": 1.0}})
    other = agent.model_copy(update={"checkpoint": checkpoint})
    newer = registered("hero2", other, told.store / "agent", registry, told.store)
    first, exchanged = registry.stored(told.agent), registry.stored(newer)
    places = {told.agent: exchanged, newer: first}
    original = registry.stored
    monkeypatch.setattr(
        registry,
        "stored",
        lambda of: (
            places[of].model_copy(update={"version": registry.version(of)})
            if of in places
            else original(of)
        ),
    )
    found = problems(told)
    for ref in ("hero@1", "hero2@1"):
        assert any(each.startswith(f"{ref}: mirror differs in record: ") for each in found)


def test_a_deleted_version_whose_number_was_reused_is_still_reported(told):
    """The version was deleted before the next one was registered."""
    lost = without(told, "hero@1")
    registry = lost.sources.registry
    agent = told.sources.registry.agent(told.agent)
    checkpoint = agent.checkpoint.model_copy(update={"metrics": {"reward": 1.0}})
    other = agent.model_copy(update={"checkpoint": checkpoint})
    registered("hero", other, told.store / "agent", registry, told.store)
    (problem,) = problems(lost)
    assert problem.startswith("hero@1: mirror differs in version: MLflow says nothing")


@pytest.mark.parametrize("ref", REFS)
def test_a_deleted_registration_statement_is_reported_from_its_mirror_copy(told, ref):
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        statement = "DELETE FROM attestations WHERE subject = ?"
        assert database.execute(statement, [ref]).rowcount == 1
    (problem,) = problems(told)
    assert f" of {ref}" in problem
    assert problem.endswith("is gone from the ledger; restore it")
    assert problem in verify_agent(told.agent, told.sources).problems


def test_a_deleted_registration_statement_is_reported_only_for_its_version(told):
    links, digest = Links(run="another"), records.digest("another")
    known = {"registered_as": "hero", "version": 2, "artifact": digest, "run": ""}
    file(RegisteredVersion(record=digest, links=links, at=now(), **known), told.store)
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        database.execute("DELETE FROM attestations WHERE subject = 'hero@2'")
    assert verify_agent(told.agent, told.sources).problems == ()
    (problem,) = problems(told)
    assert problem.endswith(" of hero@2 is gone from the ledger; restore it")


@pytest.mark.parametrize("ref", REFS)
def test_a_deleted_statement_is_not_reported_at_a_time_before_its_signing(told, ref):
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        database.execute("DELETE FROM attestations WHERE subject = ?", [ref])
    assert verify_everything(told.at("before")).problems == ()


@pytest.mark.parametrize("ref", REFS)
def test_a_registration_row_with_another_versions_envelope_is_reported(told, ref):
    other = next(each for each in REFS if each != ref)
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        database.execute(
            "UPDATE attestations SET envelope = (SELECT envelope FROM attestations"
            " WHERE subject = ?) WHERE subject = ?",
            [other, ref],
        )
    found = problems(told)
    assert any(f" of {ref}" in each and "evidence mirror" in each for each in found)
    assert any(
        "does not verify: its row differs from what was signed" in problem for problem in found
    )


def test_versions_without_registration_statements_are_unsigned_without_problems(told):
    with closing(sqlite3.connect(told.store / "ledger.db")) as database, database:
        database.execute("DELETE FROM attestations")
    shutil.rmtree(told.store / "mirror/registered-versions")
    found = verify_everything(told.sources)
    assert (found.problems, found.num_unsigned) == ((), 2)
    assert {each.grade for each in found.versions} == {"unsigned"}


def test_registering_a_version_again_adds_no_second_statement(told):
    agent = told.sources.registry.agent(told.agent)
    model = told.store / "agent"
    rotate(told.store / "keys/steps")
    assert registered("hero", agent, model, told.sources.registry, told.store) == told.agent
    kept = told.sources.ledger.attestations.find("registration", subject="hero@1")
    assert len(kept) == 1
    assert problems(told) == []


def test_registering_an_existing_unsigned_version_does_not_sign_the_version(told):
    agent = told.sources.registry.agent(told.agent)
    registry = told.sources.registry
    planted = registry.register_agent("planted", agent, told.store / "agent")
    assert registered("planted", agent, told.store / "agent", registry, told.store) == planted
    assert told.sources.ledger.attestations.find("registration", subject=str(planted)) == []
