from contextlib import contextmanager

import pytest
from sqlalchemy import MetaData, insert

from agentworld.errors import InputError, NotFound
from agentworld.ledger.aliases import Aliases
from agentworld.records.gate import GateResult
from agentworld.records.statements.alias import Canary, Meaning, gets_canary
from make import records

OLD, NEW = records.digest("old"), records.digest("new")
CANARY = Canary(simulator=NEW, percent=10)
DETAILS = {
    "canary": CANARY,
    "report": records.digest("report"),
    "gate": (GateResult(metric="live_gain", least=0.2, value=0.1),),
    "override": "the report is of last week",
    "request": "an-object/3",
}


def test_an_alias_change_keeps_its_canary_report_gate_override_and_request(ledger):
    change = ledger.aliases.set("stable", OLD, "ada", **DETAILS)
    assert ledger.aliases.history("stable") == [change]
    assert change.model_dump(include=DETAILS.keys()).keys() == DETAILS.keys()
    assert {name: getattr(change, name) for name in DETAILS} == DETAILS


def test_an_alias_change_repeated_with_the_same_key_is_recorded_once(ledger):
    first = ledger.aliases.set("stable", OLD, "ada", key="one")
    assert ledger.aliases.set("stable", OLD, "ada", key="one") == first
    ledger.aliases.set("stable", OLD, "ada", key="two")
    ledger.aliases.set("canary", OLD, "ada", key="one")
    assert [change.alias for change in ledger.aliases.history()] == ["stable", "stable", "canary"]


def test_an_ended_alias_means_nothing_and_keeps_its_history(ledger):
    ledger.aliases.set("stable", OLD, "ada")
    ending = ledger.aliases.end("stable", "bob", key="one", request="an-object/3")
    assert ledger.aliases.end("stable", "bob", key="one") == ending
    assert ledger.aliases.history("stable")[-1].request == "an-object/3"
    for look_up in (ledger.aliases.resolve, ledger.aliases.meaning):
        with pytest.raises(NotFound, match="there is no alias 'stable'"):
            look_up("stable")
    assert ledger.aliases.end("stable", "ada", key="two", request="an-object/3") == ending
    with pytest.raises(NotFound):
        ledger.aliases.end("nobody", "bob", key="two")
    changes = [(change.set_by, change.meaning) for change in ledger.aliases.history("stable")]
    assert changes == [("ada", Meaning(OLD)), ("bob", None)]


def test_an_ended_alias_can_be_set_again(ledger):
    ledger.aliases.set("stable", OLD, "ada")
    ledger.aliases.end("stable", "ada")
    ledger.aliases.set("stable", NEW, "ada")
    assert ledger.aliases.resolve("stable") == NEW


def test_an_end_by_command_is_recorded_after_an_end_by_custom_resource(ledger):
    ledger.aliases.set("stable", OLD, "ada", request="an-object/3")
    ledger.aliases.end("stable", "ada", request="an-object/3")
    ledger.aliases.end("stable", "bob")
    ledger.aliases.end("stable", "ada", request="an-object/3")
    assert [change.request for change in ledger.aliases.history()] == [
        "an-object/3",
        "an-object/3",
        None,
    ]


class _ContendedDatabase:
    """A database in which another writer moves the alias after each transaction."""

    def __init__(self, ledger):
        self._ledger = ledger

    @contextmanager
    def transaction(self):
        with self._ledger._database.transaction() as connection:
            yield connection
        self._ledger.aliases.set("stable", NEW, "bob")


def test_an_end_records_the_current_target_despite_concurrent_moves(ledger):
    ledger.aliases.set("stable", OLD, "ada")
    Aliases(_ContendedDatabase(ledger)).end("stable", "ada")
    changes = ledger.aliases.history("stable")
    (end,) = (number for number, change in enumerate(changes) if change.ended)
    assert changes[end].simulator == changes[end - 1].simulator


def test_a_keyed_change_of_an_invalid_alias_is_rejected(ledger):
    with pytest.raises(InputError, match="is not an alias"):
        ledger.aliases.set("Stable", OLD, "ada", key="one")
    assert ledger.aliases.history() == []


def test_a_canary_gets_its_share_of_the_runs(ledger):
    ledger.aliases.set("stable", OLD, "ada", canary=CANARY)
    targets = [ledger.aliases.resolve("stable", f"run-{number}") for number in range(400)]
    canaries = [gets_canary("stable", f"run-{number}", 10) for number in range(400)]
    assert targets == [NEW if is_canary else OLD for is_canary in canaries]
    assert set(targets) == {OLD, NEW}


def test_resolving_an_alias_without_a_run_never_returns_the_canary(ledger):
    almost_all = Canary(simulator=NEW, percent=99)
    for alias in ("a", "b", "c", "d"):
        ledger.aliases.set(alias, OLD, "ada", canary=almost_all)
        assert ledger.aliases.resolve(alias) == OLD


def test_an_alias_row_of_an_older_release_can_be_read(ledger):
    tables = MetaData()
    tables.reflect(ledger._database.engine)
    row = {"alias": "stable", "simulator": OLD, "set_by": "ada", "at": "2026-01-01"}
    with ledger._database.engine.begin() as connection:
        connection.execute(insert(tables.tables["aliases"]), row)
    (change,) = ledger.aliases.history("stable")
    assert change.model_dump(exclude_defaults=True) == row
