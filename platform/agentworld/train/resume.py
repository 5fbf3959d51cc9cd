"""Finding the newest checkpoint that was written to its end."""

import json
from pathlib import Path

_WRITTEN_LAST = "trainer_state.json"


def newest_checkpoint(folder: Path) -> str | None:
    """The folder that a killed run resumes from; what it was writing when killed is passed over."""
    whole = [path for path in folder.glob("checkpoint-*") if _is_whole(path)]
    newest = max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
    return str(newest) if newest else None


def _is_whole(checkpoint: Path) -> bool:
    try:
        json.loads((checkpoint / _WRITTEN_LAST).read_text())
    except (OSError, ValueError):
        return False
    return True
