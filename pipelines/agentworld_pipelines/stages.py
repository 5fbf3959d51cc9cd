"""A stage of training as its step does it: in this process, or on several nodes by a TrainJob.

Nothing heavy is imported before it is known which; a stage in this process needs no cluster.
"""

from importlib import import_module


def train(stage: str, recipe: str, store: str, *inputs: str, nodes: str = "") -> str:
    """The folder of the finished stage.

    `nodes` is the place of several nodes as JSON; where it is empty the stage is trained here.
    """
    if nodes:
        from agentworld_pipelines.follow_job import followed

        return followed(stage, recipe, store, *inputs, nodes=nodes)
    step = getattr(import_module(f"agentworld.steps.{stage}"), stage)
    return str(step(recipe, store, *inputs))
