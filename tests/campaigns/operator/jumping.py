"""The operator with clocks that jump: `python -m campaigns.operator.jumping`.

CLOCKS names the file with the offsets. The whole process uses these clocks, as on a machine that
was suspended, or whose time was set. STALLS names the journal of its stalls.
"""

import os
import sys
import threading
import time
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from agentworld_operator.main import main
from campaigns.operator.clocks import Clocks
from campaigns.operator.stalls import watch_stalls
from make.operator import older_budgets

_clocks = Clocks(Path(os.environ["CLOCKS"]))
_monotonic, _time = time.monotonic, time.time


class _Datetime(datetime):
    """Returns the shifted time, and constructs plain datetimes."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + timedelta(seconds=_clocks.ahead.wall)


def _live_by_them() -> None:
    time.monotonic = lambda: _monotonic() + _clocks.ahead.monotonic
    time.time = lambda: _time() + _clocks.ahead.wall
    for name, module in list(sys.modules.items()):
        if name.startswith("agentworld_operator.") and vars(module).get("datetime") is datetime:
            vars(module)["datetime"] = _Datetime


if __name__ == "__main__":
    journal = Path(os.environ["STALLS"])
    watch_stalls(os.environ["AGENTWORLD_IDENTITY"], journal, threading.Event(), _monotonic)
    _live_by_them()
    with older_budgets():
        sys.exit(main())
