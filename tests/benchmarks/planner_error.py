"""The planner's memory against measured peaks on a GPU: docs/figures/gpu.json.

`python -m benchmarks.planner_error` prints each; it needs no GPU.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agentworld.records.training_plan import Gpus
from agentworld.train.cards import GIB
from agentworld.train.plan.planning import Planner
from benchmarks.qwen3_sizes import QWEN3_06B, QWEN3_8B, RECIPE

_MEASURED = Path(__file__).parents[2] / "docs/figures/gpu.json"
_GPU = Gpus(num_nodes=1, per_node=1, card="H200")


class Compared(NamedTuple):
    """One training, in GiB."""

    name: str
    planned: float
    measured: float

    @property
    def error(self) -> float:
        """The relative error of the plan; negative if it is too small."""
        return self.planned / self.measured - 1


def planner_memory_error() -> float:
    """The largest absolute error."""
    return max(abs(item.error) for item in compared())


def compared() -> Iterator[Compared]:
    """Each training with a measured peak, for the same code as the plan's."""
    published = json.loads(_MEASURED.read_text())
    small, large = Planner(QWEN3_06B), Planner(QWEN3_8B)
    for name, figures in published["cpt"].items():
        if isinstance(figures, dict) and "peak_gib" in figures:
            yield _compare(name, small, figures)
    for name in ("full-8b", "lora-8b"):
        yield _compare(name, large, published[name])


def _compare(name: str, planner: Planner, figures: Mapping[str, Any]) -> Compared:
    recipe = RECIPE.model_validate(RECIPE.model_dump() | figures["settings"])
    plan_gib = planner.memory(recipe, _GPU).gpu["training"].total / GIB
    return Compared(name, plan_gib, figures["peak_gib"])


if __name__ == "__main__":
    for comparison in compared():
        sys.stdout.write(
            f"{comparison.name:<28} {comparison.planned:6.1f} GiB planned,"
            f" {comparison.measured:6.1f} measured, {comparison.error:+.1%}\n"
        )
