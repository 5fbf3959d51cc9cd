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


def using(episode, *usages):
    """Steps that used this."""
    writes = taken(episode, *("x" for _ in usages))
    return [
        write._replace(step=write.step._replace(usage=usage))
        for write, usage in zip(writes, usages, strict=True)
    ]


def opened(ledger, tenant="local", **opening):
    """A run of a tenant."""
    run = ledger.open_run(OPENING.model_copy(update=opening), SIMULATOR, tenant=tenant)
    return run.id


def test_the_usage_of_a_run_is_the_sum_over_its_steps(ledger):
    run = opened(ledger, agent="ada")
    first, second = open_episode(ledger, run), open_episode(ledger, run)
    ledger.write([*using(first, USAGE, Usage(1, 0, 2, 0.5)), *using(second, Usage(1_000))])
    (used,) = ledger.counts.run_usage(run=run)
    assert used[:5] == ("local", SIMULATOR, "ada", run, None)
    assert used[5:] == (2, 3, Usage(1_101, 40, 9, 0.75))


def test_usage_by_episode_is_listed_in_opening_order(ledger):
    run = opened(ledger)
    names = ["2" * 32, "1" * 32, "3" * 32]
    for number, name in enumerate(names):
        episode = Episode.new(name, SIMULATOR, EpisodeOpening(run=run))
        ledger.write([EpisodeOpened(episode), *using(episode, *[USAGE] * number)])
    told = [
        (each.run, each.episode, each[5:])
        for each in ledger.counts.run_usage(run=run, by_episode=True)
    ]
    sums = [(1, 0, Usage()), (1, 1, USAGE), (1, 2, USAGE.plus(USAGE))]
    assert told == list(zip([run] * 3, names, sums, strict=True))


def test_usage_lists_the_newest_run_first_regardless_of_episode_order(ledger, monkeypatch):
    ticks = itertools.count(time.time_ns(), 1_000_000)
    monkeypatch.setattr(time, "time_ns", lambda: next(ticks))
    old, new = opened(ledger), opened(ledger)
    for run in (new, old):
        ledger.write(using(open_episode(ledger, run), USAGE))
    assert [each.run for each in ledger.counts.run_usage()] == [new, old]
    assert [each.run for each in ledger.counts.run_usage(by_episode=True)] == [new, old]


@pytest.mark.parametrize("by_episode", [False, True])
def test_a_run_without_steps_has_zero_usage(ledger, by_episode):
    run = opened(ledger)
    (used,) = ledger.counts.run_usage(run=run, by_episode=by_episode)
    assert used[3:] == (run, None, 0, 0, Usage())
    open_episode(ledger, run)
    (used,) = ledger.counts.run_usage(run=run, by_episode=by_episode)
    assert used[5:] == (1, 0, Usage())


def test_the_usage_of_a_fork_excludes_its_copied_steps(ledger):
    source = open_episode(ledger)
    ledger.write(using(source, USAGE, USAGE))
    from_it = EpisodeOpening(run=source.run, fork=Source(episode=source.id, step=2))
    fork = Episode.new("f" * 32, SIMULATOR, from_it)
    steps = using(fork, *[USAGE] * 3)
    # A copy bears what its original used, as an older service may have written it.
    ledger.write([EpisodeOpened(fork._replace(steps=tuple(each.step for each in steps[:2])))])
    ledger.write(steps[2:])
    (used,) = ledger.counts.run_usage(run=source.run)
    assert used[5:] == (2, 3, Usage(300, 120, 21, 0.75))
    assert [each[5:] for each in ledger.counts.run_usage(run=source.run, by_episode=True)] == [
        (1, 2, USAGE.plus(USAGE)),
        (1, 1, USAGE),
    ]


def test_usage_can_be_filtered_by_tenant_run_and_episode(ledger):
    runs = {tenant: opened(ledger, tenant) for tenant in ("acme", "other")}
    episodes = {tenant: open_episode(ledger, run) for tenant, run in runs.items()}
    open_episode(ledger, runs["acme"])
    ledger.write([write for each in episodes.values() for write in using(each, USAGE)])
    for asked in (
        {"tenant": "acme"},
        {"run": runs["acme"]},
        {"episode": episodes["acme"].id},
        {"tenant": "acme", "run": runs["acme"], "episode": episodes["acme"].id},
    ):
        (used,) = ledger.counts.run_usage(**asked)
        num_episodes = 1 if "episode" in asked else 2
        assert (used.tenant, used.run, used[5:]) == (
            "acme",
            runs["acme"],
            (num_episodes, 1, USAGE),
        )
    assert ledger.counts.run_usage(tenant="acme", run=runs["other"]) == []


@pytest.mark.parametrize("what", ["tenant", "run", "episode"])
@pytest.mark.parametrize("by_episode", [False, True])
def test_usage_of_an_unknown_tenant_run_or_episode_is_empty(ledger, what, by_episode):
    open_episode(ledger)
    assert ledger.counts.run_usage(by_episode=by_episode, **{what: "nobody"}) == []


def test_usage_sums_can_exceed_the_maximum_of_a_step(ledger):
    most = 2**31 - 1
    episode = open_episode(ledger)
    ledger.write(using(episode, *[Usage(most, most, most, 1e9)] * 3))
    (used,) = ledger.counts.run_usage()
    assert used.usage == Usage(3 * most, 3 * most, 3 * most, 3e9)


def test_an_erased_episode_keeps_its_usage(ledger):
    episode = open_episode(ledger)
    ledger.write([*using(episode, USAGE), end(episode, 1)])
    ledger.erase_texts(episode.id)
    (used,) = ledger.counts.run_usage(episode=episode.id)
    assert used[5:] == (1, 1, USAGE)


def test_a_run_is_open_until_it_is_closed(ledger):
    first, _, other = (opened(ledger, tenant) for tenant in ("acme", "acme", "other"))
    ledger.close_run(first, closing())
    assert [ledger.counts.num_open_runs(tenant=each) for each in ("acme", "other", "nobody")] == [
        1,
        1,
        0,
    ]
    ledger.close_run(other, closing())
    assert ledger.counts.num_open_runs(tenant="other") == 0


def test_an_episode_is_open_until_it_or_its_run_is_closed(ledger):
    run, other = opened(ledger, "acme"), opened(ledger, "other")
    over, *_ = [open_episode(ledger, each) for each in (run, run, run, other)]
    ledger.write([end(over)])
    assert [ledger.counts.num_open_episodes(tenant=each) for each in ("acme", "other")] == [2, 1]
    ledger.close_run(run, closing())
    assert ledger.counts.num_open_episodes(tenant="acme") == 0


def test_open_episodes_are_counted_for_each_simulator_or_for_one(ledger):
    second = records.digest("another simulator")
    run, other = opened(ledger, "acme"), opened(ledger, "other")
    third = ledger.open_run(OPENING, second).id
    over, *_ = [open_episode(ledger, each) for each in (run, run, other)]
    open_episode(ledger, third, second)
    ledger.write([end(over)])
    assert ledger.counts.open_episodes() == {SIMULATOR: 2, second: 1}
    assert ledger.counts.open_episodes(simulator=second) == {second: 1}
    ledger.close_run(run, closing())
    ledger.close_run(third, closing())
    assert ledger.counts.open_episodes() == {SIMULATOR: 1}
    assert ledger.counts.open_episodes(simulator=second) == {}


def test_the_rewards_of_a_run_exclude_copied_steps_and_other_runs(ledger):
    run, other = opened(ledger), opened(ledger)
    for of, reward in ((run, 1.0), (run, 0.0), (run, None), (other, 1.0)):
        (taken_step,) = taken(open_episode(ledger, of), "x")
        ledger.write([taken_step._replace(step=taken_step.step._replace(reward=reward))])
    assert ledger.counts.rewards(run) == (2, 1, 0.5)
    copy = open_episode(ledger, run, fork=Source(episode="x", step=1))
    with ledger._database.engine.begin() as database:
        database.execute(EPISODES.update().where(EPISODES.c.id == copy.id).values(num_copied=1))
    (copied_step,) = taken(copy, "x")
    ledger.write([copied_step._replace(step=copied_step.step._replace(reward=1.0))])
    assert ledger.counts.rewards(run) == (2, 1, 0.5)
    assert ledger.counts.rewards(opened(ledger)) == (0, 0, None)
