import sys

import pytest

from agentworld.storage.limited import ask

pytestmark = pytest.mark.waits  # a process

SLOW_END = """
import atexit
from agentworld.errors import InputError
from agentworld.storage.limited import answer, bound

def check(request):
    bound(1, 1)
    raise InputError(f"{request} is invalid")

@atexit.register
def never_end():
    while True:
        pass

answer(check)
"""


def test_the_end_of_the_process_does_not_count_against_the_limits(tmp_path, monkeypatch):
    (tmp_path / "slow_end.py").write_text(SLOW_END)
    monkeypatch.setenv("PYTHONPATH", ":".join([str(tmp_path), *sys.path]))
    assert ask("slow_end", "this", "too much") == "this is invalid"
