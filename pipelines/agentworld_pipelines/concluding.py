"""Ends every pipeline with a record of its result, even if a step failed."""

from kfp import dsl

from agentworld.steps.table import CONCLUDE
from agentworld_pipelines.placing import Step


def with_conclusion(step: Step, pipeline: str, recipe: object, store: object) -> dsl.ExitHandler:
    """The exit handler around all other steps of a pipeline."""
    ending = step(
        CONCLUDE,
        pipeline=pipeline,
        recipe=recipe,
        store=store,
        job=dsl.PIPELINE_JOB_ID_PLACEHOLDER,
    )
    return dsl.ExitHandler(ending)
