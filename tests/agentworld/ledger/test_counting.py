"""The usage of runs and the number of open ones, on both databases."""

import itertools
import time

import pytest

from agentworld.ledger.tables import EPISODES
from agentworld.ledger.writes import EpisodeOpened
from agentworld.records.episode import Episode, EpisodeOpening, Source
from agentworld.records.usage import Usage
from make import records
from make.ledger import OPENING, SIMULATOR, closing, end, open_episode, taken

USAGE = Usage(100, 40, 7, 0.25)


def writes_with(episode, *usages):
    """Writes of steps with these usages."""
    writes = taken(episode, *("x" for _ in usages))
    return [
        write._replace(step=write.step._replace(usage=usage))
        for write, usage in zip(writes, usages, strict=True)
    ]


def open_run(ledger, tenant="local", **opening):
    """Opens a run of a tenant; returns its name."""
    run = ledger.open_run(OPENING.model_copy(update=opening), SIMULATOR, tenant=tenant)
    return run.id


def test_the_usage_of_a_run_is_the_sum_over_its_steps(ledger):
    run = open_run(ledger, agent="ada")
    first, second = open_episode(ledger, run), open_episode(ledger, run)
    ledger.write(
        [*writes_with(first, USAGE, Usage(1, 0, 2, 0.5)), *writes_with(second, Usage(1_000))]
    )
    (row,) = ledger.counts.run_usage(run=run)
    assert row[:5] == ("local", SIMULATOR, "ada", run, None)
    assert row[5:] == (2, 3, Usage(1_101, 40, 9, 0.75))


def test_usage_by_episode_is_listed_in_opening_order(ledger):
    run = open_run(ledger)
    names = ["2" * 32, "1" * 32, "3" * 32]
    for number, name in enumerate(names):
        episode = Episode.new(name, SIMULATOR, EpisodeOpening(run=run))
        ledger.write([EpisodeOpened(episode), *writes_with(episode, *[USAGE] * number)])
    rows = [
        (row.run, row.episode, row[5:]) for row in ledger.counts.run_usage(run=run, by_episode=True)
    ]
    sums = [(1, 0, Usage()), (1, 1, USAGE), (1, 2, USAGE.plus(USAGE))]
    assert rows == list(zip([run] * 3, names, sums, strict=True))


def test_usage_lists_the_newest_run_first_regardless_of_episode_order(ledger, monkeypatch):
    ticks = itertools.count(time.time_ns(), 1_000_000)
    monkeypatch.setattr(time, "time_ns", lambda: next(ticks))
    old_run, new_run = open_run(ledger), open_run(ledger)
    for run in (new_run, old_run):
        ledger.write(writes_with(open_episode(ledger, run), USAGE))
    assert [row.run for row in ledger.counts.run_usage()] == [new_run, old_run]
    assert [row.run for row in ledger.counts.run_usage(by_episode=True)] == [new_run, old_run]


@pytest.mark.parametrize("by_episode", [False, True])
def test_a_run_without_steps_has_zero_usage(ledger, by_episode):
    run = open_run(ledger)
    (row,) = ledger.counts.run_usage(run=run, by_episode=by_episode)
    assert row[3:] == (run, None, 0, 0, Usage())
    open_episode(ledger, run)
    (row,) = ledger.counts.run_usage(run=run, by_episode=by_episode)
    assert row[5:] == (1, 0, Usage())


def test_the_usage_of_a_fork_excludes_its_copied_steps(ledger):
    source = open_episode(ledger)
    ledger.write(writes_with(source, USAGE, USAGE))
    opening = EpisodeOpening(run=source.run, fork=Source(episode=source.id, step=2))
    fork = Episode.new("f" * 32, SIMULATOR, opening)
    writes = writes_with(fork, *[USAGE] * 3)
    # A copy has the usage of its original, as an older service may have written it.
    ledger.write([EpisodeOpened(fork._replace(steps=tuple(write.step for write in writes[:2])))])
    ledger.write(writes[2:])
    (row,) = ledger.counts.run_usage(run=source.run)
    assert row[5:] == (2, 3, Usage(300, 120, 21, 0.75))
    assert [usage[5:] for usage in ledger.counts.run_usage(run=source.run, by_episode=True)] == [
        (1, 2, USAGE.plus(USAGE)),
        (1, 1, USAGE),
    ]


def test_usage_can_be_filtered_by_tenant_run_and_episode(ledger):
    runs = {tenant: open_run(ledger, tenant) for tenant in ("acme", "other")}
    episodes = {tenant: open_episode(ledger, run) for tenant, run in runs.items()}
    open_episode(ledger, runs["acme"])
    ledger.write([write for episode in episodes.values() for write in writes_with(episode, USAGE)])
    for filters in (
        {"tenant": "acme"},
        {"run": runs["acme"]},
        {"episode": episodes["acme"].id},
        {"tenant": "acme", "run": runs["acme"], "episode": episodes["acme"].id},
    ):
        (row,) = ledger.counts.run_usage(**filters)
        num_episodes = 1 if "episode" in filters else 2
        assert (row.tenant, row.run, row[5:]) == (
            "acme",
            runs["acme"],
            (num_episodes, 1, USAGE),
        )
    assert ledger.counts.run_usage(tenant="acme", run=runs["other"]) == []


@pytest.mark.parametrize("field", ["tenant", "run", "episode"])
@pytest.mark.parametrize("by_episode", [False, True])
def test_usage_of_an_unknown_tenant_run_or_episode_is_empty(ledger, field, by_episode):
    open_episode(ledger)
    assert ledger.counts.run_usage(by_episode=by_episode, **{field: "nobody"}) == []


def test_usage_sums_can_exceed_the_maximum_of_a_step(ledger):
    maximum = 2**31 - 1
    episode = open_episode(ledger)
    ledger.write(writes_with(episode, *[Usage(maximum, maximum, maximum, 1e9)] * 3))
    (row,) = ledger.counts.run_usage()
    assert row.usage == Usage(3 * maximum, 3 * maximum, 3 * maximum, 3e9)


def test_an_erased_episode_keeps_its_usage(ledger):
    episode = open_episode(ledger)
    ledger.write([*writes_with(episode, USAGE), end(episode, 1)])
    ledger.erase_texts(episode.id)
    (row,) = ledger.counts.run_usage(episode=episode.id)
    assert row[5:] == (1, 1, USAGE)


def test_a_run_is_open_until_it_is_closed(ledger):
    first, _, other = (open_run(ledger, tenant) for tenant in ("acme", "acme", "other"))
    ledger.close_run(first, closing())
    assert [ledger.counts.num_open_runs(tenant=name) for name in ("acme", "other", "nobody")] == [
        1,
        1,
        0,
    ]
    ledger.close_run(other, closing())
    assert ledger.counts.num_open_runs(tenant="other") == 0


def test_an_episode_is_open_until_it_or_its_run_is_closed(ledger):
    run, other = open_run(ledger, "acme"), open_run(ledger, "other")
    ended, *_ = [open_episode(ledger, name) for name in (run, run, run, other)]
    ledger.write([end(ended)])
    assert [ledger.counts.num_open_episodes(tenant=name) for name in ("acme", "other")] == [2, 1]
    ledger.close_run(run, closing())
    assert ledger.counts.num_open_episodes(tenant="acme") == 0


def test_open_episodes_are_counted_for_each_simulator_or_for_one(ledger):
    other_simulator = records.digest("another simulator")
    run, other = open_run(ledger, "acme"), open_run(ledger, "other")
    third_run = ledger.open_run(OPENING, other_simulator).id
    ended, *_ = [open_episode(ledger, name) for name in (run, run, other)]
    open_episode(ledger, third_run, other_simulator)
    ledger.write([end(ended)])
    assert ledger.counts.open_episodes() == {SIMULATOR: 2, other_simulator: 1}
    assert ledger.counts.open_episodes(simulator=other_simulator) == {other_simulator: 1}
    ledger.close_run(run, closing())
    ledger.close_run(third_run, closing())
    assert ledger.counts.open_episodes() == {SIMULATOR: 1}
    assert ledger.counts.open_episodes(simulator=other_simulator) == {}


def test_the_rewards_of_a_run_exclude_copied_steps_and_other_runs(ledger):
    run, other = open_run(ledger), open_run(ledger)
    for name, reward in ((run, 1.0), (run, 0.0), (run, None), (other, 1.0)):
        (write,) = taken(open_episode(ledger, name), "x")
        ledger.write([write._replace(step=write.step._replace(reward=reward))])
    assert ledger.counts.rewards(run) == (2, 1, 0.5)
    fork = open_episode(ledger, run, fork=Source(episode="x", step=1))
    with ledger._database.engine.begin() as database:
        database.execute(EPISODES.update().where(EPISODES.c.id == fork.id).values(num_copied=1))
    (copied_write,) = taken(fork, "x")
    ledger.write([copied_write._replace(step=copied_write.step._replace(reward=1.0))])
    assert ledger.counts.rewards(run) == (2, 1, 0.5)
    assert ledger.counts.rewards(open_run(ledger)) == (0, 0, None)
