"""Files of records."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentworld.errors import InputError
from agentworld.records.file import write_whole
from agentworld.records.step import StepReceipt


@pytest.mark.compute
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


def test_of_thousands_of_wrong_values_their_number_is_told_and_not_each_of_them(tmp_path):
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps({"inputs": dict.fromkeys(map(str, range(20_000)), 1)}))
    with pytest.raises(
        InputError, match=r"receipt\.json is no StepReceipt: 20007 values are wrong"
    ):
        StepReceipt.read(path)
