import threading

import pytest

import make
from agentworld.errors import Conflict, InputError, NotFound, StoreError
from agentworld.ledger import Ledger
from agentworld.records.run import EpisodeOpening, EpisodeStep, RunOpening

SIMULATOR = make.digest("simulator")
OPENING = RunOpening(agent="terminal-agent", starting_weights=make.digest("starting"))


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'ledger.db'}"


@pytest.fixture
def ledger(url):
    ledger = Ledger(url)
    yield ledger
    ledger.close()


def open_episode(ledger, run=None):
    run = run or ledger.open_run(OPENING, SIMULATOR).id
    return ledger.open_episode(EpisodeOpening(run=run, task=make.task()), SIMULATOR)


def step(episode, number=1, observation="[0] ~"):
    return EpisodeStep(
        episode=episode.id,
        number=number,
        action="ls",
        observation=observation,
        head=make.digest("head"),
    )


def test_a_run_is_what_it_was_opened_with(ledger):
    run = ledger.open_run(OPENING, SIMULATOR)
    assert ledger.run(run.id) == run
    assert (run.opening, run.simulator, run.final_weights) == (OPENING, SIMULATOR, None)


def test_a_run_counts_its_episodes_and_steps(ledger):
    first = open_episode(ledger)
    second = open_episode(ledger, first.opening.run)
    ledger.append_steps([step(first, 1), step(first, 2), step(second, 1)])
    run = ledger.run(first.opening.run)
    assert (run.num_episodes, run.num_steps) == (2, 3)


def test_closing_a_run_names_the_weights_that_it_made(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id
    closed = ledger.close_run(run, make.digest("final"))
    assert closed.final_weights == make.digest("final")
    assert ledger.close_run(run, make.digest("final")) == closed


def test_a_run_is_closed_with_one_set_of_weights(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id
    ledger.close_run(run, make.digest("final"))
    with pytest.raises(Conflict, match="closed with other weights"):
        ledger.close_run(run, make.digest("other"))


def test_runs_are_found_by_their_simulator_and_by_what_they_made(ledger):
    run = ledger.open_run(OPENING, SIMULATOR)
    other = ledger.open_run(OPENING, make.digest("another simulator"))
    closed = ledger.close_run(other.id, make.digest("final"))
    assert ledger.runs_of_simulator(SIMULATOR) == [run]
    assert ledger.runs_for_agent_weights(make.digest("final")) == [closed]
    assert ledger.runs_for_agent_weights(make.digest("starting")) == []


def test_an_episode_comes_back_with_its_steps_in_order(ledger):
    episode = open_episode(ledger)
    ledger.append_steps([step(episode, 2, "b\n[0] ~"), step(episode, 1, "a\n[0] ~")])
    found = ledger.episode(episode.id)
    assert found.steps == (step(episode, 1, "a\n[0] ~"), step(episode, 2, "b\n[0] ~"))
    assert found.opening == episode.opening


def test_a_step_is_there_once(ledger):
    episode = open_episode(ledger)
    ledger.append_steps([step(episode, 1, "first")])
    with pytest.raises(Conflict, match="already holds"):
        ledger.append_steps([step(episode, 2), step(episode, 1, "second")])
    assert ledger.episode(episode.id).steps == (step(episode, 1, "first"),)


def test_a_closed_run_takes_no_episode_and_no_step(ledger):
    episode = open_episode(ledger)
    ledger.close_run(episode.opening.run, make.digest("final"))
    with pytest.raises(Conflict, match="is closed"):
        ledger.append_steps([step(episode)])
    with pytest.raises(Conflict, match="is closed"):
        open_episode(ledger, episode.opening.run)
    run = ledger.run(episode.opening.run)
    assert (run.num_episodes, run.num_steps) == (1, 0)


def test_an_episode_is_opened_with_its_runs_simulator_alone(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id
    with pytest.raises(Conflict, match="by no other simulator"):
        ledger.open_episode(EpisodeOpening(run=run), make.digest("another simulator"))


@pytest.mark.parametrize(
    "ask",
    [
        lambda ledger: ledger.run("nobody"),
        lambda ledger: ledger.episode("nobody"),
        lambda ledger: ledger.close_run("nobody", SIMULATOR),
        lambda ledger: ledger.open_episode(EpisodeOpening(run="nobody"), SIMULATOR),
    ],
    ids=["run", "episode", "close", "open episode"],
)
def test_what_is_not_there_is_said_to_be_missing(ledger, ask):
    with pytest.raises(NotFound, match="nobody"):
        ask(ledger)


def test_another_ledger_of_the_same_file_sees_what_was_written(ledger, url):
    episode = open_episode(ledger)
    ledger.append_steps([step(episode)])
    other = Ledger(url)
    assert other.episode(episode.id) == ledger.episode(episode.id)
    other.close()


def test_many_threads_write_at_once(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id

    def play():
        episode = open_episode(ledger, run)
        for number in range(1, 11):
            ledger.append_steps([step(episode, number)])

    threads = [threading.Thread(target=play) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.run(run).num_steps == 80


def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("no database\n" * 100)
    with pytest.raises(InputError, match="notes.txt is no database; name"):
        Ledger(f"sqlite:///{file}")


@pytest.mark.parametrize("url", ["notes", "nosuch://ledger", "nosuch+driver://ledger"])
def test_what_is_no_database_url_is_said_to_be_none(url):
    with pytest.raises(InputError, match="is no database URL"):
        Ledger(url)


def test_a_folder_that_is_missing_is_a_failure_of_the_store(tmp_path):
    with pytest.raises(StoreError, match="unable to open"):
        Ledger(f"sqlite:///{tmp_path}/missing/ledger.db")
