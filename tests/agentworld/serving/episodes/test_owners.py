import asyncio

import pytest

import make.ledger
from agentworld.errors import NotFound
from agentworld.ledger import Ledger
from agentworld.serving.episodes import quota
from agentworld.serving.episodes.quota import Owners
from make.ledger import OPENING, SIMULATOR


@pytest.fixture
def ledger(tmp_path):
    new_ledger = Ledger(make.ledger.laid(f"sqlite:///{tmp_path / 'ledger.db'}"))
    yield new_ledger
    new_ledger.close()


def ask(coroutine):
    return asyncio.run(coroutine)


def test_a_name_belongs_only_to_its_tenant_and_kind(ledger):
    run = ledger.open_run(OPENING, SIMULATOR, None, "acme").id
    episode = make.ledger.open_episode(ledger, run).id
    owners = Owners(ledger)
    results = {
        (kind, name, tenant): ask(owners.has(kind, name, tenant))
        for kind in ("runs", "episodes")
        for name in (run, episode, "gone")
        for tenant in ("acme", "rival")
    }
    assert {key for key, is_owner in results.items() if is_owner} == {
        ("runs", run, "acme"),
        ("episodes", episode, "acme"),
    }


def test_open_runs_and_episodes_are_counted_for_each_tenant(ledger):
    run = ledger.open_run(OPENING, SIMULATOR, None, "acme").id
    ledger.open_run(OPENING, SIMULATOR, None, "rival")
    for _ in range(3):
        make.ledger.open_episode(ledger, run)
    owners = Owners(ledger)
    counts = [ask(owners.num_open(kind, "acme")) for kind in ("runs", "episodes")]
    assert counts == [1, 3]
    ledger.close_run(run, make.ledger.closing())
    assert [ask(owners.num_open(kind, "acme")) for kind in ("runs", "episodes")] == [0, 0]


def test_run_owners_are_cached_and_the_oldest_entry_is_evicted(ledger, monkeypatch):
    monkeypatch.setattr(quota, "_MOST_OWNERS", 2)
    runs = [ledger.open_run(OPENING, SIMULATOR, None, "acme").id for _ in range(3)]
    lookups, owner = [], ledger.owner
    monkeypatch.setattr(ledger, "owner", lambda run: lookups.append(run) or owner(run))
    owners = Owners(ledger)
    for run in (*runs, runs[2], runs[1], runs[0]):
        assert ask(owners.of(run)) == ("acme", SIMULATOR)
    assert lookups == [*runs, runs[0]]


def test_the_owner_or_run_of_an_unknown_name_is_not_found(ledger):
    for coroutine in (Owners(ledger).of("gone"), Owners(ledger).run_of("gone")):
        with pytest.raises(NotFound):
            ask(coroutine)
