"""From a live environment to a simulator under its name, if the world model passes its gate."""

# mypy: disable-error-code="untyped-decorator"

from kfp import dsl
from kfp.dsl.base_component import BaseComponent

from agentworld_pipelines import components
from agentworld_pipelines.concluding import concluded
from agentworld_pipelines.placement import Placement
from agentworld_pipelines.placing import placed


def world_model(placement: Placement | None = None) -> BaseComponent:
    """Placed on a cluster, or to run here."""
    step, target = placed(placement), placement.target if placement else ""

    @dsl.pipeline(
        name="world-model",
        description="From a live environment to a simulator that is pinned and deployed.",
    )
    def pipeline(recipe: str, store: str) -> None:
        """A recipe's name or path, and a folder that every step can reach."""
        job = {"recipe": recipe, "store": store}
        with concluded(step, "world_model", **job):
            collected = step(components.collect, **job).output
            data = step(components.prepare, **job, collected=collected).output
            cpt = step(components.cpt, **job, data=data).output
            sft = step(components.sft, **job, data=data, parent=cpt).output
            rl = step(components.rl, **job, data=data, parent=sft).output
            stages = {"cpt": cpt, "sft": sft, "rl": rl}
            report = step(components.evaluate, **job, data=data, **stages).output
            verdict = step(components.gate, **job, report=report).outputs["Output"]
            with dsl.If(verdict == "passed"):
                version = step(components.register, store=store, **stages, report=report).output
                simulator = step(components.simulate, **job, version=version).output
                step(components.deploy, **job, simulator=simulator, target=target)

    return pipeline
