"""Measures every night whether the served simulator still agrees with live environments."""

# mypy: disable-error-code="untyped-decorator"

from kfp import dsl
from kfp.dsl.base_component import BaseComponent

from agentworld_pipelines.concluding import with_conclusion
from agentworld_pipelines.placement import Placement
from agentworld_pipelines.placing import step_adder


def nightly(placement: Placement | None = None) -> BaseComponent:
    """Placed on a cluster, or to run here."""
    step = step_adder(placement)

    @dsl.pipeline(name="nightly", description="What is served, held against fresh live episodes.")
    def pipeline(recipe: str, store: str, simulator: str = "") -> None:
        """As for the world model, and an alias, a digest or a folder in place of the recipe's."""
        job = {"recipe": recipe, "store": store}
        with with_conclusion(step, "nightly", **job):
            run = dsl.PIPELINE_JOB_ID_PLACEHOLDER
            step("measure", **job, simulator=simulator, job=run)

    return pipeline
