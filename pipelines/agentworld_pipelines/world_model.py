"""From a live environment to a simulator under its alias, if the world model passes its gate.

It is trained by all stages or by some: each starts from the stage before, and the first from the
recipe's base, or from a new model. Before them, a teacher may write traces for SFT.
"""

# mypy: disable-error-code="untyped-decorator"

from collections.abc import Sequence

from kfp import dsl
from kfp.dsl.base_component import BaseComponent

from agentworld.errors import InputError
from agentworld.recipes import Recipe
from agentworld.records.checkpoint import WORLD_STAGES
from agentworld_pipelines.concluding import with_conclusion
from agentworld_pipelines.placement import Placement
from agentworld_pipelines.placing import step_adder

TRACES = "traces"
"""The step that may precede the stages."""


def world_model(
    placement: Placement | None = None, stages: Sequence[str] = WORLD_STAGES
) -> BaseComponent:
    """For a cluster's placement, or to run here.

    Raises InputError for repeated or unordered stages, and for traces without sft.
    """
    has_traces = TRACES in stages
    if not _is_chain(stages):
        raise InputError(
            f"{', '.join(stages) or 'nothing'} is no chain of stages; give some of"
            f" {', '.join(WORLD_STAGES)}, each once and in this order, and {TRACES} before them"
            " only if sft is one of them"
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
            traces = {TRACES: step(TRACES, **job, data=data).output} if has_traces else {}
            trained: dict[str, object] = {}
            for stage in stages[has_traces:]:
                inputs = {"parent": [*trained.values()][-1]} if trained else {}
                inputs |= traces if stage == "sft" else {}
                trained[stage] = step(stage, **job, data=data, **inputs).output
            report = step("evaluate", **job, data=data, **trained).output
            verdict = step("gate", **job, report=report).outputs["Output"]
            with dsl.If(verdict == "passed"):
                version = step("register", **job, **trained, report=report).output
                simulator = step("simulate", **job, version=version).output
                step("deploy", **job, simulator=simulator, place=target)

    return pipeline


def all_stages(recipe: Recipe) -> list[str]:
    """All stages, after the step `traces` if this recipe has it."""
    return [*([TRACES] if recipe.traces else []), *WORLD_STAGES]


def _is_chain(stages: Sequence[str]) -> bool:
    in_order = [stage for stage in (TRACES, *WORLD_STAGES) if stage in stages]
    return bool(stages) and list(stages) == in_order and ("sft" in stages or TRACES not in stages)
