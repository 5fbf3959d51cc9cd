"""Steps that forks copied are distinguished from those that the simulator answered in the run."""

import base64
import json
import sqlite3

import pytest

from agentworld.audit.checks.signed_log import opening_entry
from agentworld.ledger.writes import EpisodeOpened, NewStep
from agentworld.records.episode import Episode, EpisodeOpening, Source
from agentworld.records.log import episode_opened
from agentworld.records.statements.edge import Traffic
from agentworld.serving.episodes.session import copy_steps
from agentworld.signing.checkpoint import RunCheckpoint, sign_checkpoint, verify_checkpoint
from agentworld.signing.keys import ensure_signer
from make import records

SIMULATOR = records.digest("simulator")


def fork(scene, step=1):
    """Forks `first` at a step, with one step of its own."""
    source = scene.ledger.episode("first")
    opening = EpisodeOpening(run=scene.run, fork=Source(episode="first", step=step))
    fork_episode = copy_steps(Episode.new("fork", SIMULATOR, opening), source.steps[:step])
    own_step = records.episode(
        *["a", "b"][:step], "own", base=fork_episode._replace(steps=())
    ).steps[-1]
    scene.ledger.write([EpisodeOpened(fork_episode)])
    scene.ledger.write([NewStep(scene.run, own_step.link(fork_episode.head))])


def newest_checkpoint(scene) -> RunCheckpoint:
    envelopes = scene.ledger.logs.checkpoints(scene.run)
    return verify_checkpoint(envelopes[max(envelopes)], scene.evidence.trusted)


def replace_checkpoint(scene, traffic: Traffic) -> None:
    """Replaces the newest checkpoint, in both stores, by a signed one with this traffic."""
    checkpoint = newest_checkpoint(scene).model_copy(update={"traffic": traffic})
    envelope = sign_checkpoint(checkpoint, ensure_signer(scene.folder / "keys"))
    scene.copies[-1].write_bytes(envelope)
    with sqlite3.connect(scene.folder / "ledger.db") as database:
        database.execute(
            "UPDATE checkpoints SET envelope = ? WHERE length = ?", (envelope, checkpoint.length)
        )


def change_entry(scene, episode, **fields):
    """Changes an episode's opening in the log, as an attacker with access to the database would."""
    entry = opening_entry(episode, scene.ledger)
    body = json.dumps({**entry.readable_fields, **fields}, separators=(",", ":"), sort_keys=True)
    scene.change(
        f"UPDATE log SET body = x'{body.encode().hex()}' WHERE sequence = {entry.sequence}"
    )


def test_only_a_forks_log_entry_contains_a_number_of_copied_steps(scene):
    fork(scene, 2)
    assert opening_entry("fork", scene.ledger).readable_fields["num_copied"] == 2
    episode = scene.ledger.episode("second")
    assert episode_opened(episode) == {
        "kind": "episode-opened",
        "episode": "second",
        "head": episode.first_head,
        "control": episode.opened_with.control,
    }


def test_a_checkpoint_counts_answered_and_copied_steps_separately(scene):
    fork(scene, 2)
    scene.seal()
    traffic = newest_checkpoint(scene).traffic
    assert (traffic.num_episodes, traffic.num_steps, traffic.num_copied) == (3, 4, 2)
    finding = scene.verify()
    assert (finding.grade, finding.problems, finding.num_steps) == ("verified", (), 4)
    assert scene.verify_episode("fork").grade == "verified"


def test_a_checkpoint_that_counts_copied_steps_as_answered_does_not_verify(scene):
    fork(scene, 2)
    scene.seal()
    traffic = newest_checkpoint(scene).traffic
    replace_checkpoint(scene, traffic.model_copy(update={"num_steps": 6, "num_copied": 0}))
    assert any("states other traffic" in problem for problem in scene.verify().problems)


def test_a_fork_without_a_number_of_copied_steps_in_the_log_is_reported(scene, monkeypatch):
    def without_number(episode):
        return {name: value for name, value in original(episode).items() if name != "num_copied"}

    original = episode_opened
    monkeypatch.setattr("agentworld.records.log.episode_opened", without_number)
    fork(scene, 2)
    scene.seal()
    assert "episode fork did not begin as the log says" in scene.verify().problems


@pytest.mark.parametrize("number", [1, 0, -2, "2", None, [2]])
def test_a_forks_copied_step_count_changed_before_signing_is_reported(scene, number):
    fork(scene, 2)
    change_entry(scene, "fork", num_copied=number)
    scene.seal()
    assert "episode fork did not begin as the log says" in scene.verify().problems
    assert "episode fork did not begin as the log says" in scene.verify_episode("fork").problems


def test_a_forks_copied_step_count_changed_after_signing_is_reported(scene):
    fork(scene, 2)
    scene.seal()
    change_entry(scene, "fork", num_copied=1)
    assert any("not those that were signed" in problem for problem in scene.verify().problems)


def test_a_copied_step_count_of_an_episode_without_a_fork_is_reported(scene):
    change_entry(scene, "second", num_copied=1)
    assert "episode second did not begin as the log says" in scene.verify().problems


def test_checkpoints_of_a_run_without_forks_contain_no_copied_step_count(scene):
    for envelope in scene.ledger.logs.checkpoints(scene.run).values():
        assert "num_copied" not in base64.b64decode(json.loads(envelope)["payload"]).decode()
