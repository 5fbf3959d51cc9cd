import gc
import subprocess
import sys

import pytest

from agentworld.runner.frozen_gc import frozen_gc
from agentworld.steps.table import STEPS


@pytest.mark.compute
def test_what_lasts_is_not_collected_again():
    before = gc.get_freeze_count()
    with frozen_gc():
        assert not gc.isenabled()
        kept = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(kept)


def test_an_import_that_fails_leaves_the_collector_on():
    with pytest.raises(ImportError), frozen_gc():
        raise ImportError
    assert gc.isenabled()


@pytest.mark.compute
def test_a_step_that_is_used_again_waits_for_no_torch():
    steps = "".join(f"import agentworld.steps.{step}\n" for step in STEPS)
    command = [sys.executable, "-c", f"{steps}import sys; print('torch' in sys.modules)"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "False\n"
