"""From a live environment to a simulator under its name, if the world model passes its gate."""

# mypy: disable-error-code="untyped-decorator"

from kfp import dsl
from kfp.dsl.base_component import BaseComponent

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
            collected = step("collect", **job).output
            data = step("prepare", **job, collected=collected).output
            cpt = step("cpt", **job, data=data).output
            sft = step("sft", **job, data=data, parent=cpt).output
            rl = step("rl", **job, data=data, parent=sft).output
            stages = {"cpt": cpt, "sft": sft, "rl": rl}
            report = step("evaluate", **job, data=data, **stages).output
            verdict = step("gate", **job, report=report).outputs["Output"]
            with dsl.If(verdict == "passed"):
                version = step("register", **job, **stages, report=report).output
                simulator = step("simulate", **job, version=version).output
                step("deploy", **job, simulator=simulator, place=target)

    return pipeline
