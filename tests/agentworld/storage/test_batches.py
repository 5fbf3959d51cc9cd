"""A bad line is reported by its number, however much of its file precedes it."""

import tracemalloc

import pytest

from agentworld.errors import InputError
from agentworld.storage.batches import Part, read_batch

NUM_LINES = 50_001
LINE = b"x" * 399 + b"\n"


@pytest.mark.compute
def test_a_line_number_late_in_a_large_file_is_counted_with_little_memory(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(LINE * NUM_LINES + b'{"domain": 7}\n')
    part = Part(path, NUM_LINES * len(LINE), path.stat().st_size)
    tracemalloc.start()
    with pytest.raises(
        InputError, match=rf"a\.jsonl line {NUM_LINES + 1} is not a valid trajectory: domain"
    ):
        list(read_batch((part,)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 << 20 < part.start
