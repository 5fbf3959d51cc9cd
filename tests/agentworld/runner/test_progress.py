import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentworld.records.progress import concurrent_parts, share_of
from agentworld.runner import progress as module
from agentworld.runner.progress import ProgressFile, forget_progress, read_progress, watched_by


def test_a_step_that_has_not_started_has_no_progress(tmp_path):
    assert read_progress(tmp_path, "cpt") is None


def test_progress_is_written_at_most_twice_a_second(tmp_path, monkeypatch):
    clock = iter([0.0, *(n / 10 for n in range(1, 100))])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    file, counts = ProgressFile(tmp_path, "cpt"), []
    file.begin()
    for done in range(30):
        file.update(done, 30)
        progress = read_progress(tmp_path, "cpt")
        assert progress
        counts.append(progress.done)
    assert 3 <= len(set(counts)) <= 7


def test_a_truncated_progress_file_gives_no_progress(tmp_path):
    ProgressFile(tmp_path, "cpt").begin()
    (tmp_path / "progress/cpt.json").write_text('{"step": "cp')
    assert read_progress(tmp_path, "cpt") is None


def test_forget_progress_deletes_the_progress_of_an_earlier_job(tmp_path):
    ProgressFile(tmp_path, "cpt").begin()
    forget_progress(tmp_path)
    assert read_progress(tmp_path, "cpt") is None


@pytest.mark.parametrize(
    ("begin", "end", "done", "total", "expected"),
    [(0, 1, 5, 10, 500), (0, 0.25, 10, 10, 250), (0.25, 1, 0, 7, 250), (0.25, 1, 7, 7, 1000)],
)
def test_the_progress_of_a_part_is_scaled_to_its_share(begin, end, done, total, expected):
    ticks = []
    share_of(lambda *numbers: ticks.append(numbers), begin, end)(done, total)
    assert ticks == [(expected, 1000)]


def test_a_part_without_work_does_not_divide_by_zero():
    ticks = []
    share_of(lambda *numbers: ticks.append(numbers), 0, 1)(0, 0)
    assert ticks == [(0, 1000)]


def test_the_progress_of_concurrent_parts_adds_up():
    ticks = []
    first, second = concurrent_parts(lambda *numbers: ticks.append(numbers), 2)
    first(1, 2)
    second(3, 3)
    first(2, 2)
    assert ticks == [(250, 1000), (750, 1000), (1000, 1000)]


@pytest.mark.compute
def test_concurrent_parts_in_threads_end_with_full_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_WRITES", 0.0)
    file = ProgressFile(tmp_path, "evaluate")
    file.begin()
    parts = concurrent_parts(file.update, 4)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda part: [part(done, 200) for done in range(1, 201)], parts))
    assert read_progress(tmp_path, "evaluate").done == 1000


def test_a_watcher_receives_progress_only_inside_its_block(tmp_path, monkeypatch):
    clock = itertools.count(1)
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    file, ticks = ProgressFile(tmp_path, "collect"), []
    with watched_by(lambda done, total: ticks.append((done, total))):
        file.update(1, 3)
    file.update(2, 3)
    assert ticks == [(1, 3)]
