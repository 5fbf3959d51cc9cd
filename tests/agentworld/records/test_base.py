"""Files of records."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from agentworld.records.base import write_whole


def test_two_writers_of_one_file_leave_it_whole(tmp_path):
    path = tmp_path / "progress.json"
    texts = [str(number).encode() * 1000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: [write_whole(path, text) for _ in range(50)], texts))
    assert path.read_bytes() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_leaves_the_old_one_and_no_draft(tmp_path):
    path = tmp_path / "a"
    path.mkdir()
    with pytest.raises(OSError, match="a"):
        write_whole(path, b"new")
    assert list(tmp_path.iterdir()) == [path]
