"""An agent, trained in a simulator that is there already."""

# mypy: disable-error-code="untyped-decorator"

from collections.abc import Mapping

from kfp import dsl
from kfp.dsl.base_component import BaseComponent

from agentworld_pipelines import components
from agentworld_pipelines.placement import Placement
from agentworld_pipelines.placing import Step, placed


def agent(placement: Placement | None = None) -> BaseComponent:
    """Placed on a cluster, or to run here."""
    step = placed(placement)

    @dsl.pipeline(
        name="agent", description="An agent whose training in a simulator can be audited."
    )
    def pipeline(recipe: str, store: str, collected: str, simulator: str) -> None:
        """As for the world model, with the folders of collected episodes and of a simulator."""
        train_agent(step, {"recipe": recipe, "store": store}, collected, simulator)

    return pipeline


def train_agent(
    step: Step, job: Mapping[str, object], collected: object, simulator: object
) -> None:
    """Adds an agent's training, its validation and its audit."""
    agent = step(components.agent, **job, collected=collected, simulator=simulator).output
    validation = step(components.validate, **job, simulator=simulator, agent=agent).output
    step(components.audit, store=job["store"], agent=agent, validation=validation)
