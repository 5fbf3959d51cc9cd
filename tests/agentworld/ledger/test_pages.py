"""Lists of the ledger, a page at a time, on both databases."""

import make
from agentworld.records.episode import Confidence
from make_ledger import OPENING, SIMULATOR, closing, end, open_episode, taken

OTHER = make.digest("other")


def opened(ledger, num=1, simulator=SIMULATOR, tenant="local"):
    """The names of runs, the newest first."""
    names = [ledger.open_run(OPENING, simulator, tenant=tenant).id for _ in range(num)]
    return sorted(names, reverse=True)


def names(runs):
    return [run.id for run in runs]


def test_runs_are_read_the_newest_first_and_a_page_at_a_time(ledger):
    made = opened(ledger, 5)
    assert names(ledger.pages.runs(2)) == made[:2]
    assert names(ledger.pages.runs(2, before=made[1])) == made[2:4]
    assert names(ledger.pages.runs(2, before=made[3])) == made[4:]


def test_a_listed_run_tells_what_its_row_holds(ledger):
    (name,) = opened(ledger)
    ledger.close_run(name, closing())
    (run,) = ledger.pages.runs(9)
    assert (run.simulator, run.tenant, run.opening) == (SIMULATOR, "local", OPENING)
    assert (run.log_length, run.final_weights) == (2, closing().final_weights)


def test_runs_of_a_tenant_of_a_simulator_and_open_ones_are_chosen(ledger):
    (mine,), (other,) = opened(ledger, tenant="acme"), opened(ledger, simulator=OTHER)
    ledger.close_run(other, closing())
    assert names(ledger.pages.runs(9, tenant="acme")) == [mine]
    assert names(ledger.pages.runs(9, simulator=OTHER)) == [other]
    assert names(ledger.pages.runs(9, only_open=True)) == [mine]
    assert names(ledger.pages.runs(9, id=mine, simulator=None)) == [mine]


def test_episodes_are_read_in_the_order_of_opening_and_a_page_at_a_time(ledger):
    (run,) = opened(ledger)
    made = [open_episode(ledger, run).id for _ in range(3)]
    first = ledger.pages.episodes(run, 2)
    rest = ledger.pages.episodes(run, 2, first[-1].key)
    assert [each.id for each in (*first, *rest)] == made
    assert ledger.pages.num_episodes(run) == 3


def test_a_listed_episode_tells_its_steps_its_last_reward_and_its_end(ledger):
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


def test_simulators_are_read_by_their_newest_run(ledger):
    opened(ledger, 2)
    (newest,) = opened(ledger, simulator=OTHER, tenant="acme")
    found = ledger.pages.simulators(9)
    assert [(each.simulator, each.num_runs) for each in found] == [(OTHER, 1), (SIMULATOR, 2)]
    assert found[0].newest_run == newest
    assert ledger.pages.simulators(1, offset=1) == found[1:]
    assert ledger.pages.simulators(9, tenant="acme") == found[:1]
    assert ledger.pages.simulators(9, start=SIMULATOR[:12]) == found[1:]
    assert ledger.pages.simulators(9, start="sha256:%") == []


def test_whose_runs_are_is_told_of_those_that_are_there(ledger):
    (mine,) = opened(ledger, tenant="acme")
    assert ledger.pages.tenants_of([mine, "nobody's"]) == {mine: "acme"}
