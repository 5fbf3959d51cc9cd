"""Lists of the ledger, a page at a time, on both databases."""

import time
from contextlib import closing as closing_

from agentworld.ledger import Ledger
from agentworld.ledger.tables import EPISODES
from agentworld.records.episode import Confidence, Source
from agentworld.storage.objects import ObjectStore
from make import records
from make.ledger import OPENING, SIMULATOR, closing, end, laid, open_episode, taken

OTHER = records.digest("other")


def open_runs(ledger, num=1, simulator=SIMULATOR, tenant="local"):
    """Opens runs; returns their names, the newest first."""
    names = [ledger.open_run(OPENING, simulator, tenant=tenant).id for _ in range(num)]
    return sorted(names, reverse=True)


def names(runs):
    return [run.id for run in runs]


def test_runs_are_read_in_pages_newest_first(ledger):
    expected = open_runs(ledger, 5)
    assert names(ledger.pages.runs(2)) == expected[:2]
    assert names(ledger.pages.runs(2, after=expected[1])) == expected[2:4]
    assert names(ledger.pages.runs(2, after=expected[3])) == expected[4:]


def test_a_listed_run_contains_the_values_of_its_row(ledger):
    (name,) = open_runs(ledger)
    ledger.close_run(name, closing())
    (run,) = ledger.pages.runs(9)
    assert (run.simulator, run.tenant, run.opening) == (SIMULATOR, "local", OPENING)
    assert (run.log_length, run.final_weights) == (2, closing().final_weights)


def test_runs_can_be_filtered_by_tenant_simulator_name_and_open_state(ledger):
    (acme_run,), (other_run,) = open_runs(ledger, tenant="acme"), open_runs(ledger, simulator=OTHER)
    ledger.close_run(other_run, closing())
    assert names(ledger.pages.runs(9, tenant="acme")) == [acme_run]
    assert names(ledger.pages.runs(9, simulator=OTHER)) == [other_run]
    assert names(ledger.pages.runs(9, only_open=True)) == [acme_run]
    assert names(ledger.pages.runs(9, id=acme_run, simulator=None)) == [acme_run]
    assert set(names(ledger.pages.runs(9, simulators=[OTHER, SIMULATOR]))) == {acme_run, other_run}
    assert names(ledger.pages.runs(9, simulators=[])) == []


def test_episodes_are_read_in_pages_in_opening_order(ledger):
    (run,) = open_runs(ledger)
    expected = [open_episode(ledger, run).id for _ in range(3)]
    first_page = ledger.pages.episodes(run, 2)
    next_page = ledger.pages.episodes(run, 2, first_page[-1].key)
    assert [episode.id for episode in (*first_page, *next_page)] == expected


def test_a_listed_episode_contains_its_step_counts_last_reward_and_end(ledger):
    (run,) = open_runs(ledger)
    episode, empty = open_episode(ledger, run), open_episode(ledger, run)
    writes = taken(episode, "a", "b")
    first_step, last_step = writes[0].step, writes[1].step._replace(reward=0.5)
    low_confidence_step = first_step._replace(confidence=Confidence(low=True))
    ledger.write([writes[0]._replace(step=low_confidence_step), writes[1]._replace(step=last_step)])
    ledger.write([end(episode, 2)])
    ledger.erase_texts(episode.id)
    first, second = ledger.pages.episodes(run, 9)
    assert (first.num_steps, first.num_low, first.reward, first.closed, first.erased) == (
        *(2, 1, 0.5),
        *("closed", True),
    )
    assert (second.id, second.num_steps, second.num_low) == (empty.id, 0, 0)
    assert (second.reward, second.closed, second.erased) == (None, None, False)


def test_a_listed_episode_has_a_task_only_if_its_row_has_a_readable_opening(url, tmp_path):
    with closing_(Ledger(laid(url), ObjectStore(str(tmp_path)))) as ledger:
        (run,) = open_runs(ledger)
        long_task = records.task(initial_state="x" * 9_000)
        tasks = [records.task(), None, long_task, records.task(), records.task()]
        *_, erased_episode, garbled_episode = [
            open_episode(ledger, run, task=task) for task in tasks
        ]
        ledger.write([end(erased_episode)])
        ledger.erase_texts(erased_episode.id)
        with ledger._database.engine.begin() as database:
            condition = EPISODES.c.id == garbled_episode.id
            database.execute(EPISODES.update().where(condition).values(opening=b"["))
        task_names = [episode.task for episode in ledger.pages.episodes(run, 9)]
    assert task_names == [records.task().id, None, None, None, None]


def test_forks_and_replays_of_an_episode_are_read_in_the_order_of_opening(ledger):
    (run,), (other,) = open_runs(ledger, tenant="acme"), open_runs(ledger, tenant="rival")
    source, unrelated = open_episode(ledger, run), open_episode(ledger, run)
    origin = Source(episode=source.id, step=0)
    expected = [
        open_episode(ledger, run, fork=origin).id,
        open_episode(ledger, other, replay=origin).id,
        open_episode(ledger, run, fork=origin).id,
    ]
    first_page = ledger.pages.forks(source.id, 2)
    next_page = ledger.pages.forks(source.id, 2, first_page[-1].key)
    assert [fork.id for fork in (*first_page, *next_page)] == expected
    assert [bool(fork.opening.fork) for fork in (*first_page, *next_page)] == [True, False, True]
    assert [fork.tenant for fork in first_page] == ["acme", "rival"]
    assert [fork.id for fork in ledger.pages.forks(source.id, 9, tenant="rival")] == expected[1:2]
    assert [fork.id for fork in ledger.pages.forks(source.id, 9, run=run)] == expected[::2]
    assert ledger.pages.forks(unrelated.id, 9) == []


def test_a_fork_with_a_garbled_opening_is_listed_without_the_opening(ledger):
    source = open_episode(ledger)
    open_episode(ledger, fork=Source(episode=source.id, step=0))
    with ledger._database.engine.begin() as database:
        database.execute(EPISODES.update().values(opening=b"{"))
    (fork,) = ledger.pages.forks(source.id, 9)
    assert fork.opening is None


def test_a_fork_is_listed_with_an_opening_from_the_object_store(url, tmp_path):
    with closing_(Ledger(url, ObjectStore(str(tmp_path)))) as ledger:
        source = open_episode(ledger)
        origin = Source(episode=source.id, step=0)
        open_episode(ledger, fork=origin, initial_state="x" * 9_000)
        (fork,) = ledger.pages.forks(source.id, 9)
    assert (fork.opening.fork, len(fork.opening.initial_state)) == (origin, 9_000)


def test_an_erased_episode_is_no_longer_listed_as_a_fork(ledger):
    source = open_episode(ledger)
    fork = open_episode(ledger, fork=Source(episode=source.id, step=0))
    ledger.write([end(fork)])
    ledger.erase_texts(fork.id)
    assert ledger.pages.forks(source.id, 9) == []


def test_simulators_are_ordered_by_their_newest_run(ledger):
    open_runs(ledger, 2)
    time.sleep(0.002)  # names of the same millisecond have no order
    (newest_run,) = open_runs(ledger, simulator=OTHER, tenant="acme")
    rows = ledger.pages.simulators(9)
    assert [(row.simulator, row.num_runs) for row in rows] == [(OTHER, 1), (SIMULATOR, 2)]
    assert rows[0].newest_run == newest_run
    assert ledger.pages.simulators(9, after=newest_run) == rows[1:]
    assert ledger.pages.simulators(9, after=rows[-1].newest_run) == []
    assert ledger.pages.simulators(9, tenant="acme") == rows[:1]
    assert ledger.pages.simulators(9, start=SIMULATOR[:12]) == rows[1:]
    assert ledger.pages.simulators(9, start="sha256:%") == []


def test_tenants_of_returns_the_tenants_of_existing_runs(ledger):
    (run,) = open_runs(ledger, tenant="acme")
    assert ledger.pages.tenants_of([run, "nobody's"]) == {run: "acme"}
