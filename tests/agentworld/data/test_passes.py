"""The passes of `prepare` over batches: one result for any batches, workers and interruptions."""

import os

import pytest

from agentworld.data.prepare import prepare
from agentworld.data.workers import Workers
from agentworld.errors import InputError
from agentworld.recipes.data import PrepareRecipe
from agentworld.records.progress import ignore_progress
from agentworld.storage.batches import batches_of, read_batch
from agentworld.storage.trajectories import read_trajectories, write_trajectories
from make import records

SMALL = 2_000


def log(number, **fields):
    text = " ".join(f"w{number * word}" for word in range(1, 30))
    return records.trajectory(("look", text), ("wait", f"{number}"), domain="text", **fields)


@pytest.fixture
def logs(tmp_path):
    """Three files, in which copies and near-duplicates are far from each other."""
    trajectories = [log(n, held_out=n % 10 == 0) for n in range(1, 80)]
    near_duplicate = log(8).model_copy(
        update={"turns": (*log(8).turns, *records.trajectory().turns[:1])}
    )
    write_trajectories(tmp_path / "logs" / "a.jsonl", trajectories)
    write_trajectories(tmp_path / "logs" / "b.jsonl", [log(n, seed=1) for n in range(60, 99)])
    write_trajectories(tmp_path / "logs" / "c.jsonl", [near_duplicate, log(3, seed=2)])
    return tmp_path / "logs"


def prepare_logs(logs, out, *, bytes_per_batch=SMALL, tick=ignore_progress, **recipe):
    return prepare(PrepareRecipe(**recipe), logs, out, tick, bytes_per_batch=bytes_per_batch)


def test_a_batch_has_whole_lines_and_all_batches_have_every_line_once(logs):
    files = sorted(logs.iterdir())
    batches = batches_of(files, SMALL)
    assert len(batches) > 10
    trajectories = [trajectory for batch in batches for trajectory in read_batch(batch)]
    assert trajectories == list(read_trajectories(logs))
    assert len(batches_of(files)) == 1  # small files share a batch


def test_a_last_line_without_a_newline_is_read(tmp_path):
    (tmp_path / "a.jsonl").write_text(log(1).model_dump_json() + "\n" + log(2).model_dump_json())
    batches = batches_of([tmp_path / "a.jsonl"], 10)
    assert [trajectory for batch in batches for trajectory in read_batch(batch)] == [log(1), log(2)]


@pytest.mark.compute
def test_the_batch_size_does_not_change_the_data_set(tmp_path, logs):
    one_batch = prepare_logs(logs, tmp_path / "whole", bytes_per_batch=1 << 20)
    many_batches = prepare_logs(logs, tmp_path / "parts", num_workers=1)
    assert one_batch == many_batches
    assert one_batch.filtered["duplicate trajectory"] == 21
    assert one_batch.filtered["near-duplicate trajectory"] == 1


@pytest.mark.compute
def test_one_worker_and_several_make_the_same_data_set(tmp_path, logs):
    first = prepare_logs(logs, tmp_path / "one", num_workers=1)
    second = prepare_logs(logs, tmp_path / "several", num_workers=2)
    assert first.digest == second.digest


class Killed(Exception):
    """Replaces a signal, which allows no cleanup either."""


@pytest.mark.compute
def test_a_killed_preparation_reuses_its_surveys_and_gives_the_same_data_set(tmp_path, logs):
    expected, out = prepare_logs(logs, tmp_path / "whole", num_workers=1), tmp_path / "killed"

    def tick(done, total):
        if done == total - 3:
            raise Killed

    with pytest.raises(Killed):
        prepare_logs(logs, out, tick=tick, num_workers=1)
    surveys = {path: os.stat(path).st_mtime_ns for path in (out / "survey").glob("*.npz")}
    dataset = prepare_logs(logs, out, num_workers=1, tick=lambda *_: check_unchanged(surveys))
    assert dataset == expected
    assert sorted(path.name for path in out.iterdir()) == sorted(
        path.name for path in (tmp_path / "whole").iterdir()
    )


def check_unchanged(surveys):
    assert surveys
    assert all(os.stat(path).st_mtime_ns == time for path, time in surveys.items())


@pytest.mark.compute
def test_a_survey_of_another_recipe_is_not_used(tmp_path, logs):
    def tick(done, total):
        if done == total:
            raise Killed

    with pytest.raises(Killed):
        prepare_logs(logs, tmp_path / "out", tick=tick, num_workers=1, near_duplicates=None)
    dataset = prepare_logs(logs, tmp_path / "out", num_workers=1)
    assert dataset == prepare_logs(logs, tmp_path / "new", num_workers=1)


@pytest.mark.compute
def test_an_error_in_a_worker_names_the_line(tmp_path, logs):
    with (logs / "b.jsonl").open("a") as file:
        file.write('{"domain": 7}\n')
    with pytest.raises(InputError, match=r"b\.jsonl line 40 .*domain"):
        prepare_logs(logs, tmp_path / "out", num_workers=2)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.compute
def test_results_come_in_the_order_of_the_items():
    with Workers(2) as workers:
        assert list(workers.map(str, range(50))) == [str(n) for n in range(50)]
