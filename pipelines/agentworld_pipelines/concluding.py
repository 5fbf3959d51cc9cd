"""How every pipeline ends: with a record of it, whatever happened."""

from kfp import dsl

from agentworld.steps.table import CONCLUDE
from agentworld_pipelines.placing import Step


def with_conclusion(step: Step, pipeline: str, recipe: object, store: object) -> dsl.ExitHandler:
    """What stands around all other steps of a pipeline."""
    ending = step(
        CONCLUDE,
        pipeline=pipeline,
        recipe=recipe,
        store=store,
        job=dsl.PIPELINE_JOB_ID_PLACEHOLDER,
    )
    return dsl.ExitHandler(ending)
