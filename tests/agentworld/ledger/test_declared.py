"""Changes that are stored together with a signed statement, and the effect of a declared
restore.
"""

import pytest

from agentworld.errors import Conflict, EvidenceError, StoreError
from agentworld.records.attestation import Attestation
from make import records
from make.ledger import OPENING, SIMULATOR, closing, end, open_episode, taken

OLD, NEW = records.digest("old"), records.digest("new")


def declare(statement):
    """Signs nothing, as a ledger does not read the envelope."""
    return Attestation(statement.path, statement.kind, *statement.columns, statement.canonical)


def fail(_statement):
    raise StoreError("killed")


def lose(ledger, run):
    ledger.attestations.add(Attestation(f"lost {run}", "restore", run, "", run, "", b""))


def test_an_alias_change_is_stored_with_its_statement(ledger):
    for simulator in (OLD, NEW):
        ledger.aliases.set("stable", simulator, "ada", declare=declare)
    ledger.aliases.end("stable", "bob", declare=declare)
    statements = ledger.attestations.find("alias", subject="stable")
    changes = ledger.aliases.history("stable")
    assert [(statement.simulator, statement.at) for statement in statements] == [
        (change.simulator, change.at) for change in changes
    ]
    assert len(ledger.attestations.names()) == 3


def test_a_repeated_alias_change_has_one_statement(ledger):
    for _ in range(2):
        ledger.aliases.set("stable", OLD, "ada", key="one", declare=declare)
    ledger.aliases.end("stable", "ada", key="two", declare=declare)
    ledger.aliases.end("stable", "ada", key="two", declare=declare)
    assert len(ledger.attestations.find("alias")) == 2


def test_an_alias_change_is_not_recorded_if_its_signing_fails(ledger):
    with pytest.raises(StoreError, match="killed"):
        ledger.aliases.set("stable", OLD, "ada", declare=fail)
    assert ledger.aliases.history() == []


def test_an_erasure_is_stored_with_one_statement(ledger):
    episode = open_episode(ledger)
    ledger.write([end(episode)])
    with pytest.raises(StoreError, match="killed"):
        ledger.erase_texts(episode.id, "ada", fail)
    assert ledger.erased_episodes() == []
    for _ in range(2):
        ledger.erase_texts(episode.id, "ada", declare)
    assert ledger.erased_episodes() == [episode.id]
    (statement,) = ledger.attestations.find("erasure", run=episode.run)
    assert (statement.subject, statement.simulator) == (episode.id, SIMULATOR)


def test_repeating_an_undeclared_erasure_declares_the_erasure(ledger):
    episode = open_episode(ledger)
    ledger.write([end(episode)])
    ledger.erase_texts(episode.id)
    assert ledger.attestations.find("erasure") == []
    ledger.erase_texts(episode.id, "ada", declare)
    assert len(ledger.attestations.find("erasure", subject=episode.id)) == 1


def test_attestations_are_read_from_a_given_position_on(ledger):
    assert ledger.attestations.after(0) == ([], 0)
    ledger.aliases.set("stable", OLD, "ada", declare=declare)
    first_statements, position = ledger.attestations.after(0)
    ledger.aliases.set("stable", NEW, "ada", declare=declare)
    (second,), last_position = ledger.attestations.after(position)
    assert [*first_statements, second] == ledger.attestations.find("alias")
    assert ledger.attestations.after(last_position) == ([], last_position)


def test_a_run_that_lost_entries_refuses_writes(ledger):
    episode, other = open_episode(ledger), open_episode(ledger)
    lose(ledger, episode.run)
    for writes in (taken(episode, "x"), [end(episode)]):
        with pytest.raises(Conflict, match=f"run {episode.run} lost entries"):
            ledger.write(writes)
    with pytest.raises(Conflict, match="lost entries"):
        ledger.close_run(episode.run, closing())
    assert ledger.run(episode.run).log_length == 2
    ledger.write(taken(other, "x"))


def test_an_open_episode_of_a_run_that_lost_entries_can_be_erased(ledger):
    episode = open_episode(ledger)
    with pytest.raises(Conflict, match="is open; close it"):
        ledger.erase_texts(episode.id, "ada", declare)
    lose(ledger, episode.run)
    ledger.erase_texts(episode.id, "ada", declare)
    assert ledger.erased_episodes() == [episode.id]


def test_a_run_that_lost_entries_is_not_counted_as_open(ledger):
    episode, other = open_episode(ledger), open_episode(ledger)
    lose(ledger, episode.run)
    assert ledger.counts.num_open_runs(simulator=SIMULATOR) == 1
    assert ledger.counts.open_episodes() == {SIMULATOR: 1}
    assert ledger.counts.num_open_episodes(tenant="local") == 1
    assert [write.run for write in ledger.idle_episodes(None, 1e12)] == [other.run]


def test_a_lost_run_cannot_be_opened_again_under_its_name(ledger):
    lose(ledger, "gone")
    with pytest.raises(Conflict, match="run gone was lost when the ledger was restored"):
        ledger.open_run(OPENING, SIMULATOR, "gone")
    run = ledger.open_run(OPENING, SIMULATOR, "kept")
    lose(ledger, "kept")
    assert ledger.open_run(OPENING, SIMULATOR, "kept") == run


def test_an_alias_row_with_an_incomplete_canary_is_garbled(ledger):
    ledger.aliases.set("stable", OLD, "ada")
    with ledger._database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE aliases SET canary_percent = 10")
    with pytest.raises(EvidenceError, match="the history of alias 'stable' is garbled: simulator"):
        ledger.aliases.history()
