import itertools
import threading
import time

import pytest

from agentworld.errors import Conflict, InputError, NotFound, StoreError
from agentworld.ledger import Ledger
from agentworld.ledger.writes import EpisodeOpened, NewStep
from agentworld.records.episode import Episode, EpisodeOpening, heads_digest, text_digest
from agentworld.storage.objects import ObjectStore
from make import records
from make.ledger import OPENING, SIMULATOR, closing, end, open_episode, steps, taken


def test_a_new_run_is_read_with_its_opening_and_simulator(ledger):
    run = ledger.open_run(OPENING, SIMULATOR)
    assert ledger.run(run.id) == run
    assert (run.opening, run.simulator, run.closing) == (OPENING, SIMULATOR, None)


def test_a_run_counts_its_episodes_and_steps(ledger):
    first = open_episode(ledger)
    second = open_episode(ledger, first.run)
    ledger.write([*taken(first, "a", "b"), *taken(second, "c")])
    run = ledger.run(first.run)
    assert (run.num_episodes, run.num_steps) == (2, 3)


def test_the_counts_of_a_runs_row_match_its_episodes_and_steps(ledger):
    first = open_episode(ledger)
    ledger.write(taken(first, "a", "b"))
    fork = ledger.episode(first.id)._replace(id="forked", num_copied=2)
    ledger.write([EpisodeOpened(fork._replace(steps=steps(fork._replace(steps=()), "a", "b")))])
    ledger.close_run(first.run, closing())
    run = ledger.run(first.run)
    assert (run.num_episodes, run.num_steps) == (2, 2)  # the fork's steps are the other episode's
    assert ledger.counted_run(first.run) == run


def test_reading_several_episodes_leaves_out_missing_episodes(ledger):
    first, empty = open_episode(ledger), open_episode(ledger)
    ledger.write(taken(first, "a", "b"))
    episodes = ledger.episodes_named([first.id, "missing", empty.id])
    assert episodes == {name: ledger.episode(name) for name in (first.id, empty.id)}
    assert (len(episodes[first.id].steps), episodes[empty.id].steps) == (2, ())


def test_closing_a_run_records_its_final_weights(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id
    closed_run = ledger.close_run(run, closing())
    assert closed_run.closing == closing()
    assert ledger.close_run(run, closing()) == closed_run


def test_two_replicas_can_close_the_same_run_at_once(ledger, url):
    run = ledger.open_run(OPENING, SIMULATOR).id

    class OvertakenLedger(Ledger):
        def run(self, run):
            """Returns the run as it was before the other replica closed it."""
            record = super().run(run)
            ledger.close_run(run, closing())
            return record

    replica = OvertakenLedger(url)
    assert replica.close_run(run, closing()).closing == closing()
    replica.close()


def test_a_closed_run_refuses_other_weights_and_other_signatures(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id
    ledger.close_run(run, closing())
    with pytest.raises(Conflict, match="closed with other weights"):
        ledger.close_run(run, closing("other"))
    with pytest.raises(Conflict, match="closed with another signature"):
        ledger.close_run(run, closing().model_copy(update={"signature": "late"}))


def test_a_run_is_opened_once_under_a_name(ledger):
    run = ledger.open_run(OPENING, SIMULATOR, "name")
    assert ledger.open_run(OPENING, SIMULATOR, "name") == run
    with pytest.raises(Conflict, match="already holds"):
        ledger.open_run(OPENING, records.digest("another simulator"), "name")
    assert ledger.runs() == [run]


def test_the_newest_run_comes_first(ledger, monkeypatch):
    clock = itertools.count(time.time_ns(), 1_000_000)
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    runs = [ledger.open_run(OPENING, SIMULATOR) for _ in range(4)]
    assert ledger.runs() == runs[::-1]


def test_closing_a_run_closes_its_open_episodes(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id
    empty, stepped, ended = (open_episode(ledger, run) for _ in range(3))
    other = open_episode(ledger)
    ledger.write([*taken(stepped, "a", "b"), end(ended, reason="done")])
    ledger.close_run(run, closing())
    reasons = [ledger.episode(episode.id).closed for episode in (empty, stepped, ended, other)]
    assert reasons == ["closed", "closed", "done", None]
    entries = [entry.fields for entry in ledger.logs.entries(run)]
    assert [entry["kind"] for entry in entries][-3:] == [
        "episode-closed",
        "episode-closed",
        "run-closed",
    ]
    ends = {entry["episode"]: (entry["num_steps"], entry["head"]) for entry in entries[-3:-1]}
    assert ends == {
        empty.id: (0, empty.head),
        stepped.id: (2, steps(stepped, "a", "b")[-1].head),
    }


def test_runs_are_found_by_simulator_and_by_final_weights(ledger):
    run = ledger.open_run(OPENING, SIMULATOR)
    other = ledger.open_run(OPENING, records.digest("another simulator"))
    closed_run = ledger.close_run(other.id, closing())
    assert ledger.readable_runs(simulator=SIMULATOR).records == [run]
    assert ledger.runs(final_weights=records.digest("final")) == [closed_run]
    assert ledger.runs(final_weights=records.digest("starting")) == []


def test_an_episode_is_read_with_its_steps_in_order(ledger):
    episode = open_episode(ledger, task=records.task(), seed=7)
    ledger.write(taken(episode, "a\n[0] ~", "b\n[0] ~")[::-1])
    assert ledger.episode(episode.id) == episode._replace(
        steps=steps(episode, "a\n[0] ~", "b\n[0] ~")
    )


@pytest.mark.parametrize(
    "text", ["nul \0 here", "half \ud83d of a pair", "", "\x1b[2J", "a" * 2**20]
)
def test_any_text_is_read_back_unchanged(ledger, text):
    episode = open_episode(ledger)
    ledger.write(taken(episode, text))
    stored_episode = ledger.episode(episode.id)
    assert stored_episode.steps[0].observation == text
    assert stored_episode.intact


def test_long_texts_are_kept_in_the_object_store_and_short_texts_in_rows(url, tmp_path):
    ledger = Ledger(url, ObjectStore(str(tmp_path / "objects")))
    episode = open_episode(ledger)
    ledger.write(taken(episode, "long" * 3_000, "short"))
    files = [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]
    assert [path.stat().st_size for path in files] == [12_000]
    assert ledger.episode(episode.id).steps[0].observation == "long" * 3_000
    ledger.close()


def test_a_long_opening_is_kept_in_the_object_store(url, tmp_path):
    ledger = Ledger(url, ObjectStore(str(tmp_path / "objects")))
    episode = open_episode(ledger, initial_state="tree" * 3_000)
    (file,) = [path for path in (tmp_path / "objects").rglob("*") if path.is_file()]
    assert text_digest(file.read_text()) == episode.opening_digest
    assert ledger.episode(episode.id) == episode
    ledger.close()


def test_a_step_can_be_written_only_once(ledger):
    episode = open_episode(ledger)
    ledger.write(taken(episode, "first"))
    with pytest.raises(Conflict, match="already holds"):
        ledger.write([taken(episode, "x", "second")[1], *taken(episode, "other")])
    assert ledger.episode(episode.id).steps == steps(episode, "first")


def test_a_write_call_is_atomic(ledger):
    first, second = open_episode(ledger), open_episode(ledger)
    ledger.write([end(second)])
    with pytest.raises(Conflict, match="is closed"):
        ledger.write([*taken(first, "a"), *taken(second, "b")])
    assert ledger.run(first.run).num_steps == 0


def test_an_episode_and_its_steps_can_be_written_in_one_call(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id
    episode = Episode.new("new", SIMULATOR, EpisodeOpening(run=run))
    ledger.write([*taken(episode, "a", "b"), EpisodeOpened(episode)])
    assert ledger.episode("new").steps == steps(episode, "a", "b")


def test_a_fork_is_opened_with_copied_steps_and_accepts_further_steps(ledger):
    source = open_episode(ledger)
    ledger.write([*taken(source, "a", "b"), end(source, 2)])
    fork = Episode.new("fork", SIMULATOR, EpisodeOpening(run=source.run))
    first, second, third = steps(fork, "a", "b", "c")
    ledger.write([EpisodeOpened(fork._replace(steps=(first, second)))])
    ledger.write([NewStep(source.run, third)])
    assert ledger.episode("fork").steps == (first, second, third)
    assert ledger.episode(source.id).steps == steps(source, "a", "b")


@pytest.mark.waits
def test_the_steps_of_many_episodes_of_two_runs_do_not_mix(ledger):
    runs = [ledger.open_run(OPENING, SIMULATOR).id for _ in range(2)]
    episodes = [
        Episode.new(f"{number * 7919 % 300}", SIMULATOR, EpisodeOpening(run=runs[number % 2]))
        for number in range(300)
    ]
    ledger.write(list(map(EpisodeOpened, episodes)))
    ledger.write([write for episode in episodes for write in taken(episode, episode.id)])
    for run, expected in zip(runs, (episodes[::2], episodes[1::2]), strict=True):
        steps_by_episode = {episode.id: episode.steps for episode in ledger.episodes(run)}
        assert steps_by_episode == {episode.id: steps(episode, episode.id) for episode in expected}
        assert sum(map(len, ledger.logs.heads_by_entry(run).values())) == 150


def test_an_episode_is_opened_once(ledger):
    episode = open_episode(ledger)
    with pytest.raises(Conflict, match="already holds"):
        ledger.write([EpisodeOpened(episode)])
    assert ledger.run(episode.run).log_length == 2


def test_a_write_with_a_step_of_a_missing_episode_changes_nothing(ledger):
    episode = open_episode(ledger)
    missing_episode = episode._replace(id="nobody")
    with pytest.raises(Conflict, match="reset to begin one"):
        ledger.write([*taken(episode, "a"), *taken(missing_episode, "a")])
    run = ledger.run(episode.run)
    assert (run.num_episodes, run.num_steps, run.log_length) == (1, 0, 2)


def test_a_closed_run_refuses_episodes_and_steps(ledger):
    episode = open_episode(ledger)
    ledger.close_run(episode.run, closing())
    with pytest.raises(Conflict, match="is closed"):
        ledger.write(taken(episode, "a"))
    with pytest.raises(Conflict, match="is closed"):
        open_episode(ledger, episode.run)
    run = ledger.run(episode.run)
    assert (run.num_episodes, run.num_steps) == (1, 0)


def test_a_closed_episode_refuses_steps_and_a_second_closing(ledger):
    episode = open_episode(ledger)
    ledger.write([*taken(episode, "a"), end(episode, 1, "done")])
    assert ledger.episode(episode.id).closed == "done"
    with pytest.raises(Conflict, match="is closed"):
        ledger.write([taken(episode, "a", "b")[1]])
    with pytest.raises(Conflict, match="is closed or has new steps"):
        ledger.write([end(episode, 1)])


def test_closing_an_episode_with_an_outdated_step_count_is_refused(ledger):
    episode = open_episode(ledger)
    ledger.write(taken(episode, "a"))
    with pytest.raises(Conflict, match="or has new steps"):
        ledger.write([end(episode, 0, "expired")])
    assert ledger.episode(episode.id).closed is None


def test_an_episode_with_another_simulator_than_its_run_is_refused(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id
    with pytest.raises(Conflict, match="by no other simulator"):
        open_episode(ledger, run, records.digest("another simulator"))


def test_a_step_for_another_run_than_its_episodes_is_refused(ledger):
    episode, other = open_episode(ledger), ledger.open_run(OPENING, SIMULATOR)
    with pytest.raises(Conflict, match="another run's"):
        ledger.write([NewStep(other.id, *steps(episode, "a"))])


def test_the_log_contains_all_events_of_a_run_in_order(ledger):
    episode = open_episode(ledger)
    run = episode.run
    ledger.write([*taken(episode, "a", "b"), end(episode, 2, "done")])
    ledger.close_run(run, closing())
    log = ledger.logs.entries(run)
    assert [entry.sequence for entry in log] == [1, 2, 3, 4, 5]
    assert [entry.fields["kind"] for entry in log] == [
        "run-opened",
        "episode-opened",
        "steps",
        "episode-closed",
        "run-closed",
    ]
    assert log[2].fields["num_steps"] == 2
    assert log[2].fields["heads"] == heads_digest(steps(episode, "a", "b"))
    assert ledger.run(run).log_length == 5


def test_a_runs_episodes_are_listed_in_opening_order(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id
    names = [open_episode(ledger, run).id for _ in range(5)]
    assert [episode.id for episode in ledger.episodes(run)] == names


def test_an_episode_is_idle_since_its_last_step_or_its_opening(ledger):
    deadline = time.time() + 60
    empty, stepped = open_episode(ledger), open_episode(ledger)
    ended = open_episode(ledger)
    ledger.write([*taken(stepped, "a"), end(ended)])
    idle = {write.episode: write for write in ledger.idle_episodes(SIMULATOR, deadline)}
    assert idle.keys() == {empty.id, stepped.id}
    assert idle[empty.id].head == empty.head
    assert (idle[stepped.id].num_steps, idle[stepped.id].reason) == (1, "expired")
    assert ledger.idle_episodes(SIMULATOR, deadline - 120) == []
    ledger.write(list(idle.values()))
    assert ledger.idle_episodes(SIMULATOR, deadline) == []


def test_idle_episodes_and_unsealed_runs_are_found_for_one_or_all_simulators(ledger):
    other_simulator, deadline = records.digest("another simulator"), time.time() + 60
    runs = {digest: ledger.open_run(OPENING, digest).id for digest in (SIMULATOR, other_simulator)}
    idle = {digest: open_episode(ledger, run, digest).id for digest, run in runs.items()}
    for digest in runs:
        assert ledger.logs.unsealed_runs(digest) == [runs[digest]]
        assert [write.episode for write in ledger.idle_episodes(digest, deadline)] == [idle[digest]]
        assert ledger.owner(runs[digest]) == ("local", digest)
    assert sorted(ledger.logs.unsealed_runs()) == sorted(runs.values())
    assert {write.episode for write in ledger.idle_episodes(None, deadline)} == set(idle.values())


def test_an_alias_resolves_to_its_last_target_and_keeps_its_history(ledger):
    ledger.aliases.set("stable", SIMULATOR, "ada")
    ledger.aliases.set("stable", records.digest("next"), "bob")
    assert ledger.aliases.resolve("stable") == records.digest("next")
    assert ledger.aliases.resolve(SIMULATOR) == SIMULATOR
    history = [(change.simulator, change.set_by) for change in ledger.aliases.history("stable")]
    assert history == [(SIMULATOR, "ada"), (records.digest("next"), "bob")]


@pytest.mark.parametrize("name", ["", "Stable", "a b", "-a", "a" * 64])
def test_an_invalid_alias_is_rejected(ledger, name):
    with pytest.raises(InputError, match="is not an alias"):
        ledger.aliases.set(name, SIMULATOR, "ada")


@pytest.mark.parametrize(
    "call",
    [
        lambda ledger: ledger.run("nobody"),
        lambda ledger: ledger.episode("nobody"),
        lambda ledger: ledger.close_run("nobody", closing()),
        lambda ledger: open_episode(ledger, "nobody"),
        lambda ledger: ledger.aliases.resolve("nobody"),
    ],
    ids=["run", "episode", "close", "open episode", "alias"],
)
def test_using_a_missing_run_episode_or_alias_raises_not_found(ledger, call):
    with pytest.raises(NotFound, match="nobody"):
        call(ledger)


@pytest.mark.parametrize("call", [Ledger.run, Ledger.counted_run, Ledger.owner])
def test_the_error_for_a_missing_run_suggests_a_restore_not_a_new_run(ledger, call):
    with pytest.raises(NotFound, match="or restore the ledger if it had this run") as error:
        call(ledger, "taken")
    assert "open" not in str(error.value)


def test_a_second_ledger_of_the_same_database_reads_the_written_records(ledger, url):
    episode = open_episode(ledger)
    ledger.write(taken(episode, "a"))
    other = Ledger(url)
    assert other.episode(episode.id) == ledger.episode(episode.id)
    other.close()


def test_writes_from_many_threads_give_the_log_a_single_order(ledger):
    run = ledger.open_run(OPENING, SIMULATOR).id

    def play():
        episode = open_episode(ledger, run)
        for write in taken(episode, *"abcdefghij"):
            ledger.write([write])

    threads = [threading.Thread(target=play) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.run(run).num_steps == 80
    assert [entry.sequence for entry in ledger.logs.entries(run)] == list(range(1, 90))


def test_a_file_that_is_not_a_database_is_rejected(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("no database\n" * 100)
    with pytest.raises(InputError, match="notes.txt is not a database; name"):
        Ledger(f"sqlite:///{file}")


@pytest.mark.parametrize("url", ["notes", "nosuch://ledger", "nosuch+driver://ledger"])
def test_an_invalid_database_url_is_rejected(url):
    with pytest.raises(InputError, match="is not a database URL"):
        Ledger(url)


def test_a_missing_folder_raises_a_store_error(tmp_path):
    with pytest.raises(StoreError, match="unable to open"):
        Ledger(f"sqlite:///{tmp_path}/missing/ledger.db")
