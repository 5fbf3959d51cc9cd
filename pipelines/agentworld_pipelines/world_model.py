"""From a live environment to a simulator under its name, if the world model passes its gate.

It is trained by all stages or by some: each begins where the one before it ended, and the first at
the recipe's base, or as a new model.
"""

# mypy: disable-error-code="untyped-decorator"

from collections.abc import Sequence

from kfp import dsl
from kfp.dsl.base_component import BaseComponent

from agentworld.errors import InputError
from agentworld.records.checkpoint import WORLD_STAGES
from agentworld_pipelines.concluding import with_conclusion
from agentworld_pipelines.placement import Placement
from agentworld_pipelines.placing import step_adder


def world_model(
    placement: Placement | None = None, stages: Sequence[str] = WORLD_STAGES
) -> BaseComponent:
    """Placed on a cluster, or to run here; raises InputError for stages that are no chain."""
    if not stages or list(stages) != [stage for stage in WORLD_STAGES if stage in stages]:
        raise InputError(
            f"{', '.join(stages) or 'nothing'} is no chain of stages; give some of"
            f" {', '.join(WORLD_STAGES)}, each once and in this order"
        )
    step, target = step_adder(placement), placement.target if placement else ""

    @dsl.pipeline(
        name="world-model",
        description="From a live environment to a simulator that is pinned and deployed.",
    )
    def pipeline(recipe: str, store: str) -> None:
        """A recipe's name or path, and a folder that every step can reach."""
        job = {"recipe": recipe, "store": store}
        with with_conclusion(step, "world_model", **job):
            collected = step("collect", **job).output
            data = step("prepare", **job, collected=collected).output
            trained: dict[str, object] = {}
            for stage in stages:
                parent = {"parent": [*trained.values()][-1]} if trained else {}
                trained[stage] = step(stage, **job, data=data, **parent).output
            report = step("evaluate", **job, data=data, **trained).output
            verdict = step("gate", **job, report=report).outputs["Output"]
            with dsl.If(verdict == "passed"):
                version = step("register", **job, **trained, report=report).output
                simulator = step("simulate", **job, version=version).output
                step("deploy", **job, simulator=simulator, place=target)

    return pipeline
