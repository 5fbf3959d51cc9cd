"""The findings of the verification of one episode."""

import pytest

from agentworld.errors import EvidenceError, NotFound


def test_a_closed_and_signed_episode_is_verified(scene):
    finding = scene.verify_episode("first")
    assert (finding.grade, finding.problems) == ("verified", ())
    assert (finding.run, finding.num_steps, finding.closed) == (scene.run, 2, "closed")
    assert 0 < finding.last_entry <= finding.signed_length


def test_an_episode_whose_last_entry_is_not_signed_is_graded_unsigned(scene):
    scene.play("third", "d")
    finding = scene.verify_episode("third")
    assert (finding.grade, finding.problems) == ("unsigned", ())
    assert finding.last_entry > finding.signed_length
    assert scene.verify_episode("first").grade == "verified"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE steps SET reward = 1.0 WHERE episode = 1", "do not follow"),
        ("DELETE FROM steps WHERE episode = 1 AND number = 2", "did not end as"),
        ("UPDATE episodes SET num_copied = 1", "did not begin"),
        ("UPDATE episodes SET closed = NULL WHERE id = 'first'", "did not end as"),
        ("DELETE FROM log WHERE sequence > 4", "its end is cut off"),
        ("UPDATE steps SET entry = 99 WHERE episode = 1 AND number = 1", "under entry 99"),
    ],
)
def test_a_tampered_episode_is_reported_as_broken(scene, statement, problem):
    scene.change(statement)
    finding = scene.verify_episode("first")
    assert any(problem in sentence for sentence in finding.problems), finding.problems
    assert finding.grade == "broken"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE steps SET reward = 1.0 WHERE episode = 2",
        "DELETE FROM steps WHERE episode = 2",
        "UPDATE episodes SET closed = 'expired' WHERE id = 'second'",
    ],
)
def test_tampering_with_an_episode_breaks_only_that_episode(scene, statement):
    scene.change(statement)
    assert scene.verify_episode("first").grade == "verified"
    assert scene.verify_episode("second").grade == "broken"


def test_an_episode_missing_from_its_runs_log_is_reported(scene):
    scene.change("UPDATE episodes SET id = 'third' WHERE id = 'second'")
    problems = scene.verify_episode("third").problems
    assert f"the log of run {scene.run} does not name episode third" in problems


def test_an_episode_deleted_from_the_ledger_is_reported_from_its_runs_log(scene):
    scene.change("DELETE FROM steps WHERE episode = 2", "DELETE FROM episodes WHERE id = 'second'")
    sentence = (
        rf"episode second was opened in run {scene.run} \(entry 6 of its log\) and is missing"
    )
    with pytest.raises(EvidenceError, match=sentence):
        scene.verify_episode("second")


def test_a_deleted_episode_is_reported_despite_garbled_entries_and_runs(scene):
    scene.change("UPDATE log SET body = x'00' WHERE sequence = 3")
    with pytest.raises(NotFound):
        scene.verify_episode("third")
    scene.change("UPDATE runs SET opening = '{}'")
    with pytest.raises(NotFound):
        scene.verify_episode("third")
    scene.change("DELETE FROM steps WHERE episode = 2", "DELETE FROM episodes WHERE id = 'second'")
    with pytest.raises(EvidenceError, match=f"episode second was opened in run {scene.run}"):
        scene.verify_episode("second")


def test_an_erased_episode_is_verified(scene):
    assert not scene.verify_episode("first").erased
    scene.ledger.erase_texts("first")
    finding = scene.verify_episode("first")
    assert (finding.grade, finding.erased) == ("verified", True)


def test_verifying_a_missing_or_garbled_episode_raises_an_error(scene):
    with pytest.raises(NotFound):
        scene.verify_episode("third")
    scene.change("UPDATE episodes SET opening = '[]' WHERE id = 'first'")
    with pytest.raises(EvidenceError, match="episode first is garbled"):
        scene.verify_episode("first")
