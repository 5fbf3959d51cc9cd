import errno
from contextlib import suppress
from pathlib import Path

import pytest

from agentworld.errors import InputError, StoreError
from agentworld.records.base import Digest, Record, digest_bytes
from agentworld.records.progress import OnProgress
from agentworld.runner.lock import hold
from agentworld.runner.progress import read_progress
from agentworld.runner.step import output_of, run_step
from agentworld.train.resume import CHECKPOINTS
from make import records


class Part(Record):
    words: str


class Worker:
    """Work that records its runs, and raises the given errors first."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.found: list[list[str]] = []

    def __call__(self, out: Path, tick: OnProgress) -> Digest:
        self.found.append(sorted(path.name for path in out.iterdir()))
        (out / "half").write_text("done")
        tick(1, 2)
        if self.failures:
            raise self.failures.pop(0)
        (out / "whole").write_text("done")
        return digest_bytes(b"made")


def run(store: Path, work: Worker, words: str = "a recipe's part", **inputs: Digest) -> Path:
    return run_step(store, "collect", [Part(words=words)], inputs, work)


def test_a_finished_step_is_reused(tmp_path):
    work = Worker()
    assert run(tmp_path, work) == run(tmp_path, work)
    assert len(work.found) == 1


def test_a_finished_step_keeps_no_checkpoints_also_if_it_was_killed_before_it_removed_them(
    tmp_path,
):
    work = Worker()
    checkpoints = run(tmp_path, work) / CHECKPOINTS
    (checkpoints / "checkpoint-1").mkdir(parents=True)
    run(tmp_path, work)
    assert not checkpoints.exists()
    assert len(work.found) == 1


def test_another_recipe_gives_another_step_folder(tmp_path):
    assert run(tmp_path, Worker()) != run(tmp_path, Worker(), "others")


def test_another_input_gives_another_step_folder(tmp_path):
    assert run(tmp_path, Worker()) != run(tmp_path, Worker(), data=records.digest("data"))


def test_a_step_that_failed_continues_in_its_folder(tmp_path):
    work = Worker(InputError("no"))
    with pytest.raises(InputError):
        run(tmp_path, work)
    run(tmp_path, work)
    assert work.found == [[], ["half"]]


def test_the_output_of_a_finished_step_is_the_digest_that_its_work_returned(tmp_path):
    assert output_of(str(run(tmp_path, Worker()))) == digest_bytes(b"made")


def test_a_folder_without_a_finished_step_has_no_output(tmp_path):
    with pytest.raises(InputError, match="is not a finished step"):
        output_of(str(tmp_path))


@pytest.mark.parametrize(
    ("failures", "states"),
    [([], ["finished", "reused"]), ([InputError("no")], ["failed", "finished"])],
)
def test_progress_shows_how_a_step_ended(tmp_path, failures, states):
    work, results = Worker(*failures), []
    for _ in states:
        with suppress(InputError):
            run(tmp_path, work)
        progress = read_progress(tmp_path, "collect")
        assert progress
        results.append(progress.state)
    assert results == states


def test_a_failure_is_recorded_with_its_type_and_message(tmp_path):
    with pytest.raises(InputError):
        run(tmp_path, Worker(InputError("the recipe is wrong at data; mend it")))
    progress = read_progress(tmp_path, "collect")
    assert progress
    assert (progress.failure, progress.sentence) == (
        "InputError",
        "the recipe is wrong at data; mend it",
    )


def test_the_first_failure_of_several_processes_is_recorded(tmp_path, monkeypatch):
    def first_process(_out: Path, on_progress: OnProgress) -> Digest:
        monkeypatch.setenv("RANK", "1")
        with pytest.raises(InputError, match="the cause"):
            run(tmp_path, Worker(InputError("the cause")))
        on_progress(1, 2)
        raise OSError("the peer is missing")

    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("agentworld.runner.progress._SECONDS_BETWEEN_WRITES", 0.0)
    with pytest.raises(OSError, match="the peer is missing"):
        run(tmp_path, first_process)
    progress = read_progress(tmp_path, "collect")
    assert progress
    assert (progress.state, progress.failure) == ("failed", "InputError")
    assert progress.sentence == "the cause"


def test_a_full_disk_is_reported_with_the_path_of_the_store(tmp_path):
    with pytest.raises(StoreError, match="is full; free space"):
        run(tmp_path, Worker(OSError(errno.ENOSPC, "No space left on device")))
    progress = read_progress(tmp_path, "collect")
    assert progress
    assert progress.sentence.startswith(f"the disk that holds {tmp_path} is full; free space")


def test_a_step_locked_by_another_process_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("agentworld.runner.step._PATIENCE_SECONDS", 0.0)
    folder = run(tmp_path, Worker())
    (folder / "receipt.json").unlink()
    with (
        hold(folder.with_name(folder.name + ".lock"), "held"),
        pytest.raises(StoreError, match="another process works on collect"),
    ):
        run(tmp_path, Worker())


def test_a_failed_check_prevents_an_unfinished_step_and_records_the_reason(tmp_path):
    def check() -> None:
        raise InputError("no shell can be had here")

    work = Worker()
    with pytest.raises(InputError, match="no shell"):
        run_step(tmp_path, "collect", [Part(words="a part")], {}, work, check=check)
    assert work.found == []
    assert not (tmp_path / "steps").exists()
    progress = read_progress(tmp_path, "collect")
    assert progress
    assert progress.sentence == "no shell can be had here"
    folder = run(tmp_path, work, "a part")
    second_folder = run_step(tmp_path, "collect", [Part(words="a part")], {}, work, check=check)
    assert second_folder == folder  # a finished step is not checked


def test_a_full_disk_is_recognized_in_the_message_of_a_library_error(tmp_path):
    error = RuntimeError("I/O error: No space left on device (os error 28)")
    with pytest.raises(StoreError, match=f"the disk that holds {tmp_path} is full"):
        run(tmp_path, Worker(error))


def test_an_unexpected_error_keeps_its_type_and_message(tmp_path):
    with pytest.raises(ValueError, match="odd"):
        run(tmp_path, Worker(ValueError("an odd value")))
    progress = read_progress(tmp_path, "collect")
    assert progress
    assert progress.sentence == "ValueError: an odd value"
