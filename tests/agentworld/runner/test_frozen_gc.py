import gc
import subprocess
import sys

import pytest

from agentworld.runner.frozen_gc import frozen_gc
from agentworld.steps.table import STEPS


@pytest.mark.compute
def test_objects_created_in_the_block_are_frozen():
    before = gc.get_freeze_count()
    with frozen_gc():
        assert not gc.isenabled()
        objects = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(objects)


def test_garbage_collection_is_enabled_after_a_failed_import():
    with pytest.raises(ImportError), frozen_gc():
        raise ImportError
    assert gc.isenabled()


@pytest.mark.compute
def test_importing_the_steps_does_not_import_torch():
    steps = "".join(f"import agentworld.steps.{step}\n" for step in STEPS)
    command = [sys.executable, "-c", f"{steps}import sys; print('torch' in sys.modules)"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "False\n"
