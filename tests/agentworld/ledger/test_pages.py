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


def opened(ledger, num=1, simulator=SIMULATOR, tenant="local"):
    """The names of runs, the newest first."""
    names = [ledger.open_run(OPENING, simulator, tenant=tenant).id for _ in range(num)]
    return sorted(names, reverse=True)


def names(runs):
    return [run.id for run in runs]


def test_runs_are_read_in_pages_newest_first(ledger):
    made = opened(ledger, 5)
    assert names(ledger.pages.runs(2)) == made[:2]
    assert names(ledger.pages.runs(2, after=made[1])) == made[2:4]
    assert names(ledger.pages.runs(2, after=made[3])) == made[4:]


def test_a_listed_run_contains_the_values_of_its_row(ledger):
    (name,) = opened(ledger)
    ledger.close_run(name, closing())
    (run,) = ledger.pages.runs(9)
    assert (run.simulator, run.tenant, run.opening) == (SIMULATOR, "local", OPENING)
    assert (run.log_length, run.final_weights) == (2, closing().final_weights)


def test_runs_can_be_filtered_by_tenant_simulator_name_and_open_state(ledger):
    (mine,), (other,) = opened(ledger, tenant="acme"), opened(ledger, simulator=OTHER)
    ledger.close_run(other, closing())
    assert names(ledger.pages.runs(9, tenant="acme")) == [mine]
    assert names(ledger.pages.runs(9, simulator=OTHER)) == [other]
    assert names(ledger.pages.runs(9, only_open=True)) == [mine]
    assert names(ledger.pages.runs(9, id=mine, simulator=None)) == [mine]
    assert set(names(ledger.pages.runs(9, simulators=[OTHER, SIMULATOR]))) == {mine, other}
    assert names(ledger.pages.runs(9, simulators=[])) == []


def test_episodes_are_read_in_pages_in_opening_order(ledger):
    (run,) = opened(ledger)
    made = [open_episode(ledger, run).id for _ in range(3)]
    first = ledger.pages.episodes(run, 2)
    rest = ledger.pages.episodes(run, 2, first[-1].key)
    assert [each.id for each in (*first, *rest)] == made


def test_a_listed_episode_contains_its_step_counts_last_reward_and_end(ledger):
    (run,) = opened(ledger)
    episode, empty = open_episode(ledger, run), open_episode(ledger, run)
    writes = taken(episode, "a", "b")
    low, last = writes[0].step, writes[1].step._replace(reward=0.5)
    unsure = low._replace(confidence=Confidence(low=True))
    ledger.write([writes[0]._replace(step=unsure), writes[1]._replace(step=last)])
    ledger.write([end(episode, 2)])
    ledger.erase_texts(episode.id)
    told, other = ledger.pages.episodes(run, 9)
    assert (told.num_steps, told.num_low, told.reward, told.closed, told.erased) == (
        *(2, 1, 0.5),
        *("closed", True),
    )
    assert (other.id, other.num_steps, other.num_low) == (empty.id, 0, 0)
    assert (other.reward, other.closed, other.erased) == (None, None, False)


def test_a_listed_episode_has_a_task_only_if_its_row_has_a_readable_opening(url, tmp_path):
    with closing_(Ledger(laid(url), ObjectStore(str(tmp_path)))) as ledger:
        (run,) = opened(ledger)
        long = records.task(initial_state="x" * 9_000)
        tasks = [records.task(), None, long, records.task(), records.task()]
        *_, erased, garbled = [open_episode(ledger, run, task=task) for task in tasks]
        ledger.write([end(erased)])
        ledger.erase_texts(erased.id)
        with ledger._database.engine.begin() as database:
            of = EPISODES.c.id == garbled.id
            database.execute(EPISODES.update().where(of).values(opening=b"["))
        listed = [episode.task for episode in ledger.pages.episodes(run, 9)]
    assert listed == [records.task().id, None, None, None, None]


def test_forks_and_replays_of_an_episode_are_read_in_the_order_of_opening(ledger):
    (run,), (other,) = opened(ledger, tenant="acme"), opened(ledger, tenant="rival")
    source, unlike = open_episode(ledger, run), open_episode(ledger, run)
    at = Source(episode=source.id, step=0)
    made = [
        open_episode(ledger, run, fork=at).id,
        open_episode(ledger, other, replay=at).id,
        open_episode(ledger, run, fork=at).id,
    ]
    found = ledger.pages.forks(source.id, 2)
    rest = ledger.pages.forks(source.id, 2, found[-1].key)
    assert [each.id for each in (*found, *rest)] == made
    assert [bool(each.opening.fork) for each in (*found, *rest)] == [True, False, True]
    assert [each.tenant for each in found] == ["acme", "rival"]
    assert [each.id for each in ledger.pages.forks(source.id, 9, tenant="rival")] == made[1:2]
    assert [each.id for each in ledger.pages.forks(source.id, 9, run=run)] == made[::2]
    assert ledger.pages.forks(unlike.id, 9) == []


def test_a_fork_with_a_garbled_opening_is_listed_without_the_opening(ledger):
    source = open_episode(ledger)
    open_episode(ledger, fork=Source(episode=source.id, step=0))
    with ledger._database.engine.begin() as database:
        database.execute(EPISODES.update().values(opening=b"{"))
    (found,) = ledger.pages.forks(source.id, 9)
    assert found.opening is None


def test_a_fork_is_listed_with_an_opening_from_the_object_store(url, tmp_path):
    with closing_(Ledger(url, ObjectStore(str(tmp_path)))) as ledger:
        source = open_episode(ledger)
        at = Source(episode=source.id, step=0)
        open_episode(ledger, fork=at, initial_state="x" * 9_000)
        (found,) = ledger.pages.forks(source.id, 9)
    assert (found.opening.fork, len(found.opening.initial_state)) == (at, 9_000)


def test_an_erased_episode_is_no_longer_listed_as_a_fork(ledger):
    source = open_episode(ledger)
    fork = open_episode(ledger, fork=Source(episode=source.id, step=0))
    ledger.write([end(fork)])
    ledger.erase_texts(fork.id)
    assert ledger.pages.forks(source.id, 9) == []


def test_simulators_are_ordered_by_their_newest_run(ledger):
    opened(ledger, 2)
    time.sleep(0.002)  # the names of one millisecond are in no order
    (newest,) = opened(ledger, simulator=OTHER, tenant="acme")
    found = ledger.pages.simulators(9)
    assert [(each.simulator, each.num_runs) for each in found] == [(OTHER, 1), (SIMULATOR, 2)]
    assert found[0].newest_run == newest
    assert ledger.pages.simulators(9, after=newest) == found[1:]
    assert ledger.pages.simulators(9, after=found[-1].newest_run) == []
    assert ledger.pages.simulators(9, tenant="acme") == found[:1]
    assert ledger.pages.simulators(9, start=SIMULATOR[:12]) == found[1:]
    assert ledger.pages.simulators(9, start="sha256:%") == []


def test_tenants_of_returns_the_tenants_of_existing_runs(ledger):
    (mine,) = opened(ledger, tenant="acme")
    assert ledger.pages.tenants_of([mine, "nobody's"]) == {mine: "acme"}
