"""Files of records."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentworld.errors import InputError
from agentworld.records.file import write_whole
from agentworld.records.step import StepReceipt


@pytest.mark.compute
def test_concurrent_writers_leave_one_complete_file(tmp_path):
    path = tmp_path / "progress.json"
    texts = [str(number).encode() * 1000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: [write_whole(path, text) for _ in range(50)], texts))
    assert path.read_bytes() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_existing_path_and_no_draft(tmp_path):
    path = tmp_path / "a"
    path.mkdir()
    with pytest.raises(OSError, match="a"):
        write_whole(path, b"new")
    assert list(tmp_path.iterdir()) == [path]


def test_many_invalid_values_are_reported_by_their_number(tmp_path):
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps({"inputs": dict.fromkeys(map(str, range(20_000)), 1)}))
    with pytest.raises(
        InputError, match=r"receipt\.json is no StepReceipt: 20007 values are wrong"
    ):
        StepReceipt.read(path)
