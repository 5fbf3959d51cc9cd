"""Names for the objects of a demo's store, in which each step is an act."""

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import make.service
from agentworld.signing.keys import SIMULATOR_KEYS, STEP_KEYS, load_trusted
from agentworld.steps.table import MAIN_JOB
from agentworld.storage.receipts import read_receipt
from make.audit_rows import History, Names

MOMENTS = ("cpt", "simulate", "register_agent", "audit", "now")
"""The steps before which audits are run. All steps but two wait for the one before them:
`close_run` and `validate` run in either order.
"""


def audited(store: Path) -> History:
    """Each act is a step; it begins when the previous one is finished."""
    receipts = {path.parts[-3]: path for path in store.glob("steps/*/*/receipt.json")}
    ends = {
        step: datetime.fromtimestamp(path.stat().st_mtime_ns // 10**6 / 1000, UTC)
        for step, path in sorted(receipts.items(), key=lambda item: item[1].stat().st_mtime_ns)
    }
    starts = [datetime.fromtimestamp(0, UTC), *ends.values()]
    acts = [*zip(starts, [*ends, "now"], strict=True)]
    moments = {step: start for start, step in acts if step in MOMENTS}
    return History(store, Names(_words(store), acts), moments, {})


def _words(store: Path) -> dict[str, str]:
    """Names of the steps' outputs, the runs in their order, and the keys."""
    words: dict[str, str] = {}
    for step in ("agent", *MAIN_JOB):  # RL of a few steps may not change the imitated weights
        for receipt in store.glob(f"steps/{step}/*/receipt.json"):
            words.setdefault(read_receipt(receipt.parent).output, f"what {step} made")
    with closing(make.service.ledger(store)) as ledger:
        for number, run in enumerate(reversed(ledger.runs()), 1):
            words[run.id] = f"{run.opening.purpose}-run-{number}"
    for folder, name in ((SIMULATOR_KEYS, "service key"), (STEP_KEYS, "step key")):
        words |= dict.fromkeys(load_trusted(store / "keys" / folder), name)
    return words
