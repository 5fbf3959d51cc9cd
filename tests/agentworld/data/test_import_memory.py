"""An import's memory use is constant: measured in a separate process."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.compute

SMALL, LARGE = (int(size) for size in os.environ.get("IMPORT_MB", "20 200").split())
"""Megabytes of text; `make test-long` takes 1,000 and 10,000."""
RECORD_BYTES = 50_000

PROGRAM = """
import resource, sys
from pathlib import Path
from agentworld.data.imported import import_trajectories
from agentworld.recipes.data import CollectRecipe
from agentworld.records.progress import ignore_progress
from agentworld.storage.source import digest_of

source, out = sys.argv[1:]
recipe = CollectRecipe(trajectories=source, format="messages")
import_trajectories(recipe, digest_of(source), Path(out), ignore_progress)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def write_logs(path, num_bytes):
    """Writes a zstd file with this many bytes of text, with one record in memory at a time."""
    import pyarrow

    words = "amber birch cedar delta ember fjord grove haven ".split()
    with pyarrow.CompressedOutputStream(str(path), "zstd") as file:
        for number in range(num_bytes // RECORD_BYTES):
            text = f"{number} " + f"{words[number % 8]} " * (RECORD_BYTES // 6)
            call = {"id": "c", "function": {"name": "read", "arguments": f'{{"n":{number}}}'}}
            messages = [
                {"role": "assistant", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": text[: RECORD_BYTES - 200]},
            ]
            file.write(json.dumps({"messages": messages}).encode() + b"\n")


def peak_kib(tmp_path, megabytes):
    """The peak memory in KiB of an import of this much text."""
    source, out = tmp_path / f"{megabytes}.jsonl.zst", tmp_path / f"out-{megabytes}"
    write_logs(source, megabytes * 10**6)
    command = [sys.executable, "-c", PROGRAM, str(source), str(out)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    source.unlink()
    for chunk in out.iterdir():
        chunk.unlink()
    return int(result.stdout)


def test_importing_ten_times_the_text_needs_at_most_ten_percent_more_memory(tmp_path):
    small, large = peak_kib(tmp_path, SMALL), peak_kib(tmp_path, LARGE)
    assert large < 1.1 * small, (small, large)
