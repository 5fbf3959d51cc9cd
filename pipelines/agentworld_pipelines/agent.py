"""An agent, trained in a simulator that is there already."""

# mypy: disable-error-code="untyped-decorator"

from kfp import dsl
from kfp.dsl.base_component import BaseComponent

from agentworld_pipelines.concluding import with_conclusion
from agentworld_pipelines.placement import Placement
from agentworld_pipelines.placing import step_adder


def agent(placement: Placement | None = None) -> BaseComponent:
    """Placed on a cluster, or to run here."""
    step = step_adder(placement)

    @dsl.pipeline(
        name="agent", description="An agent whose training in a simulator can be audited."
    )
    def pipeline(recipe: str, store: str, simulator: str = "") -> None:
        """As for the world model; the simulator by its alias or its digest, or the recipe's."""
        job = {"recipe": recipe, "store": store}
        with with_conclusion(step, "agent", **job):
            collected_folder = step("collect", **job).output
            inputs = {"collected": collected_folder, "simulator": simulator}
            imitated = step("imitate", **job, **inputs).output
            run = step("open_run", **job, imitated=imitated).output
            agent = step("agent", **job, imitated=imitated, run=run).output
            closed = step("close_run", **job, agent=agent).output
            validation = step("validate", **job, imitated=imitated, agent=agent).output
            proof = {"closed": closed, "validation": validation}
            registered = step("register_agent", **job, agent=agent, **proof).output
            step("audit", **job, registered=registered, validation=validation)

    return pipeline
