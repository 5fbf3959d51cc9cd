"""The limits of each folder's tests, in processor seconds: tests/budget.toml."""

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from lanes.results import TestResult

BUDGET = Path(__file__).parents[1] / "budget.toml"


def over_budget(tests: Iterable[TestResult], budget: Path = BUDGET) -> Iterator[str]:
    """A line for each folder whose tests exceed its limit, or that has none."""
    limits: dict[str, float] = tomllib.loads(budget.read_text())["processor_seconds"]
    costs: dict[str, float] = defaultdict(float)
    for test in tests:
        costs[_folder(test, limits)] += test.processor_seconds
    for folder, seconds in sorted(costs.items()):
        if folder not in limits:
            yield f"no budget: {folder} took {seconds:.0f} processor seconds"
        elif seconds > limits[folder]:
            yield f"over budget: {folder} took {seconds:.0f} of {limits[folder]} processor seconds"


def _folder(test: TestResult, limits: Iterable[str]) -> str:
    """The longest folder that the budget names, else the test's own."""
    own_folder = test.file.removeprefix("tests/").rpartition("/")[0] or "."
    parents = [folder for folder in limits if f"{own_folder}/".startswith(f"{folder}/")]
    return max(parents, key=len, default=own_folder)
