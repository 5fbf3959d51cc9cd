"""The agent's log under kills, cuts, full disks and several writers."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.client.trajectory import TrajectoryLog, read_trajectory
from agentworld.errors import InputError, StoreError
from agentworld.records.trajectory_log import TornLine, TrajectoryEnd, write_line
from waiting import wait_for


def line(step):
    return TrajectoryEnd("r", "e", step, "closed")


def lines(*steps):
    return [line(step) for step in steps]


def read_log(folder):
    return list(read_trajectory(folder))


def test_lines_are_read_in_the_order_of_writing(tmp_path):
    with TrajectoryLog(tmp_path / "log") as log:
        log.write(line(1))
        log.write(*lines(2, 3))
    assert read_log(tmp_path / "log") == lines(1, 2, 3)


def test_a_log_without_lines_creates_no_file(tmp_path):
    with TrajectoryLog(tmp_path / "log"):
        pass
    assert not (tmp_path / "log").exists()


def test_a_full_file_is_followed_by_another_file(tmp_path):
    with TrajectoryLog(tmp_path, max_bytes=2 * len(write_line(line(1)))) as log:
        for step in range(1, 6):
            log.write(line(step))
    assert len(list(tmp_path.iterdir())) == 3
    assert read_log(tmp_path) == lines(1, 2, 3, 4, 5)


def test_several_logs_share_a_folder(tmp_path):
    with TrajectoryLog(tmp_path) as first, TrajectoryLog(tmp_path) as second:
        first.write(line(1))
        second.write(line(2))
        first.write(line(3))
    assert sorted(entry.step for entry in read_log(tmp_path)) == [1, 2, 3]


def test_a_closed_log_continues_in_another_file(tmp_path):
    log = TrajectoryLog(tmp_path)
    for step in (1, 2):
        log.write(line(step))
        log.close()
    assert len(list(tmp_path.iterdir())) == 2
    assert read_log(tmp_path) == lines(1, 2)


STEPS = st.lists(st.integers(0, 10**9), max_size=6)


@given(STEPS, st.data())
def test_a_truncated_file_loses_only_the_line_at_the_cut(tmp_path_factory, steps, data):
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    content = b"".join(map(write_line, lines(*steps)))
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    num_lines = content[:cut].count(b"\n")
    num_torn = cut - (content[:cut].rfind(b"\n") + 1)
    expected = [*lines(*steps[:num_lines]), *([TornLine(path.name, num_torn)] if num_torn else [])]
    assert read_log(path) == expected


def test_files_after_a_torn_file_are_read(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(write_line(line(1)) + b'{"kind": "e')
    (tmp_path / "b.jsonl").write_bytes(write_line(line(2)))
    assert read_log(tmp_path) == [line(1), TornLine("a.jsonl", 11), line(2)]


def test_an_invalid_line_is_reported_with_its_file(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(write_line(line(1)) + b"{}\n")
    with pytest.raises(InputError, match=r"a\.jsonl line 2 is not a line of a trajectory: kind"):
        read_log(tmp_path)


def test_deeply_nested_json_is_reported_as_an_invalid_line(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"[" * 100_000 + b"\n")
    with pytest.raises(InputError, match=r"a\.jsonl line 1"):
        read_log(tmp_path)


@pytest.mark.parametrize(("name", "words"), [("", "holds no trajectory"), ("gone", "cannot read")])
def test_an_empty_or_missing_log_is_reported(tmp_path, name, words):
    with pytest.raises(InputError, match=words):
        read_log(tmp_path / name)


def run_python(folder: Path, code: str) -> int:
    preamble = f"""
        import os, resource, signal, sys
        from pathlib import Path
        from agentworld.client.trajectory import TrajectoryLog
        from agentworld.errors import StoreError
        from agentworld.records.trajectory_log import TrajectoryEnd
        folder = Path({str(folder)!r})
        def line(step):
            return TrajectoryEnd("r", "e", step, "closed")
    """
    program = textwrap.dedent(preamble) + textwrap.dedent(code)
    return subprocess.run([sys.executable, "-c", program], check=False).returncode


@pytest.mark.waits
def test_a_killed_process_loses_no_written_line(tmp_path):
    code = """
        log = TrajectoryLog(folder, sync_seconds=3600)
        for step in range(100):
            log.write(line(step))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    assert run_python(tmp_path, code) == -signal.SIGKILL
    assert read_log(tmp_path) == lines(*range(100))


@pytest.mark.waits
def test_a_partly_written_line_is_torn_and_the_next_line_begins_another_file(tmp_path):
    code = """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        log = TrajectoryLog(folder)
        log.write(line(1))
        (file,) = folder.iterdir()
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 10, most))
        try:
            log.write(line(2))
        except StoreError as error:
            assert "cannot be written" in str(error)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            log.write(line(2))
            log.close()
            sys.exit(42)
    """
    assert run_python(tmp_path, code) == 42
    first, torn_line, second = read_log(tmp_path)
    assert [first, second] == lines(1, 2)
    assert torn_line.num_bytes == 10


def test_lines_are_synced_to_disk_in_groups(tmp_path, monkeypatch):
    paths, fsync = [], os.fsync

    def record(handle):
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        # The logs of other tests may still sync.
        if path == tmp_path.parent or path.is_relative_to(tmp_path):
            paths.append(str(path))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    log = TrajectoryLog(tmp_path, sync_seconds=0.2)
    for step in range(50):
        log.write(line(step))
    (file,) = tmp_path.iterdir()
    assert paths[:2] == [str(tmp_path), str(tmp_path.parent)]  # the names precede the lines
    wait_for(lambda: len(paths) > 2)
    assert set(paths[2:]) == {str(file)}
    assert len(paths[2:]) < 50
    num_paths = len(paths)
    log.write(line(50))
    log.close()
    assert paths[num_paths:]


def test_a_failed_sync_is_raised_by_a_later_write(tmp_path, monkeypatch):
    log = TrajectoryLog(tmp_path, sync_seconds=0.05)
    log.write(line(1))
    steps = []

    def fail(_handle):
        raise OSError(5, "Input/output error")

    def write_next():
        steps.append(len(steps) + 2)
        log.write(line(steps[-1]))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="Input/output error"):
        wait_for(write_next)  # the sync fails in another thread, some time later
    monkeypatch.undo()
    log.write(line(steps[-1]))
    log.close()
    assert read_log(tmp_path) == lines(1, *steps)
