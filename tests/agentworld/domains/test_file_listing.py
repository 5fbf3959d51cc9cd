import pytest

from agentworld.domains.file_listing import END_SUPERVISOR
from agentworld.domains.sandbox import SandboxLimits, open_sandbox
from waiting import DEADLINE

pytestmark = pytest.mark.waits

_LOSES_THE_FIRST_SIGNAL = f"""
trap '(( ++signals < 2 )) || exit 7' USR1
{{ {END_SUPERVISOR}; }} &
wait; wait
"""


def test_a_supervisor_that_loses_a_signal_ends_by_the_next():
    sandbox = open_sandbox(["/bin/bash", "-c", _LOSES_THE_FIRST_SIGNAL], SandboxLimits())
    try:
        assert sandbox.process.wait(DEADLINE) == 7
    finally:
        sandbox.close()
