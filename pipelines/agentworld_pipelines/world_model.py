"""The main job: from a live terminal to an audited agent."""

# mypy: disable-error-code="untyped-decorator"

from kfp import dsl

from agentworld_pipelines import components


def _folder(task: dsl.PipelineTask) -> dsl.pipeline_channel.PipelineChannel:
    """What a step hands on; it runs every time, and finds out by its receipt what is to do."""
    return task.set_caching_options(False).output


@dsl.pipeline(
    name="world-model",
    description="From a live terminal to an agent whose training can be audited.",
)
def world_model(recipe: str, store: str) -> None:
    """A recipe's name or path, and a folder that every step can reach."""
    job = {"recipe": recipe, "store": store}
    collected = _folder(components.collect(**job))
    data = _folder(components.prepare(**job, collected=collected))
    cpt = _folder(components.cpt(**job, data=data))
    sft = _folder(components.sft(**job, data=data, parent=cpt))
    rl = _folder(components.rl(**job, data=data, parent=sft))
    report = _folder(components.evaluate(**job, data=data, cpt=cpt, sft=sft, rl=rl))
    version = _folder(components.register(store=store, cpt=cpt, sft=sft, rl=rl, report=report))
    simulator = _folder(components.simulate(**job, version=version))
    agent = _folder(components.agent(**job, collected=collected, simulator=simulator))
    validation = _folder(components.validate(**job, simulator=simulator, agent=agent))
    _folder(components.audit(store=store, agent=agent, validation=validation))
