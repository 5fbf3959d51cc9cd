"""Import and prepare in one process: `python -m benchmarks.data_ours LOGS FOLDER KIND`."""

import json
import sys
import time
from pathlib import Path

from agentworld.data.imported import import_trajectories
from agentworld.data.prepare import prepare
from agentworld.recipes.data import CollectRecipe, PrepareRecipe
from agentworld.records.progress import ignore_progress
from agentworld.storage.source import digest_of

LIGHT = PrepareRecipe(near_duplicates=None, leaks=None, redact=False)
RECIPES = {"light": LIGHT, "all": PrepareRecipe(), "one": PrepareRecipe(num_workers=1)}


def main() -> None:
    """Prints the seconds of both, and the digests."""
    logs, folder, recipe = sys.argv[1], Path(sys.argv[2]), RECIPES[sys.argv[3]]
    start = time.perf_counter()
    collect = CollectRecipe(trajectories=logs)
    import_trajectories(collect, digest_of(logs), folder / "collected", ignore_progress)
    import_end = time.perf_counter()
    dataset = prepare(recipe, folder / "collected", folder / "data", ignore_progress)
    result = {
        "import_seconds": round(import_end - start, 2),
        "prepare_seconds": round(time.perf_counter() - import_end, 2),
        "digest": dataset.digest,
        "pools": {pool: file.content for pool, file in dataset.pools.items()},
        "filtered": dataset.filtered,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
