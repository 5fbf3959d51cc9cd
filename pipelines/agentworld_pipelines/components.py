"""One component for each step: the project's image, and one call.

A component hands on the folder of its step by name. The receipt in that folder, and not
Kubeflow's cache, says whether the step has to run. A stage of training may need several nodes,
and a step of live shells another pod than its own, and then it is done there: see `stages`.
"""

# mypy: disable-error-code="untyped-decorator, valid-type"

from typing import NamedTuple

from kfp import dsl

IMAGE = "agentworld:0.1.0"
"""Built from this repository; a cluster names its own copy when it compiles the pipeline."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def collect(recipe: str, store: str, place: str = "") -> str:
    """Live episodes."""
    from agentworld_pipelines.retries import retried
    from agentworld_pipelines.stages import live

    return retried(live, "collect", recipe, store, place=place)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def prepare(recipe: str, store: str, collected: str) -> str:
    """Pools of samples."""
    from agentworld.steps.prepare import prepare
    from agentworld_pipelines.retries import retried

    return retried(prepare, recipe, store, collected)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def cpt(recipe: str, store: str, data: str, nodes: str = "") -> str:
    """Continual pre-training."""
    from agentworld_pipelines.retries import retried
    from agentworld_pipelines.stages import train

    return retried(train, "cpt", recipe, store, data, nodes=nodes)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def sft(recipe: str, store: str, data: str, parent: str, nodes: str = "") -> str:
    """Supervised fine-tuning."""
    from agentworld_pipelines.retries import retried
    from agentworld_pipelines.stages import train

    return retried(train, "sft", recipe, store, data, parent, nodes=nodes)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def rl(recipe: str, store: str, data: str, parent: str, nodes: str = "") -> str:
    """RL of the world model."""
    from agentworld_pipelines.retries import retried
    from agentworld_pipelines.stages import train

    return retried(train, "rl", recipe, store, data, parent, nodes=nodes)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def evaluate(recipe: str, store: str, data: str, cpt: str, sft: str, rl: str) -> str:
    """The stages and two baselines on held-out live episodes."""
    from agentworld.steps.evaluate import evaluate
    from agentworld_pipelines.retries import retried

    return retried(evaluate, recipe, store, data, cpt, sft, rl)


# The verdict is called as the one output of the others is: kfp.local finds what a condition asks
# for under that name alone, and takes it for untrue otherwise. A plain tuple is told by its order.
# Kubeflow runs this text without the rest of the module, so that the names have to stand in it.
@dsl.component(base_image=IMAGE, install_kfp_package=False)
def gate(recipe: str, store: str, report: str) -> NamedTuple(
    "Verdict", [("folder", str), ("Output", str), ("reason", str)]
):
    """Whether the world model may go on."""
    from agentworld.steps.gate import gate
    from agentworld_pipelines.retries import retried

    return tuple(retried(gate, recipe, store, report))


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def register(store: str, cpt: str, sft: str, rl: str, report: str) -> str:
    """A version of the world model."""
    from agentworld.steps.register import register
    from agentworld_pipelines.retries import retried

    return retried(register, store, cpt, sft, rl, report)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def simulate(recipe: str, store: str, version: str) -> str:
    """A pinned simulator."""
    from agentworld.steps.simulate import simulate
    from agentworld_pipelines.retries import retried

    return retried(simulate, recipe, store, version)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def deploy(recipe: str, store: str, simulator: str, target: str) -> str:
    """Runs are opened with the simulator from now on."""
    from agentworld_pipelines.deploying import deploy
    from agentworld_pipelines.retries import retried

    return retried(deploy, recipe, store, simulator, target)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def imitate(recipe: str, store: str, collected: str, simulator: str) -> str:
    """An agent that imitates explorers, for one simulator."""
    from agentworld.steps.imitate import imitate
    from agentworld_pipelines.retries import retried

    return retried(imitate, recipe, store, collected, simulator)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def open_run(recipe: str, store: str, imitated: str) -> str:
    """A run of the agent in that simulator."""
    from agentworld.steps.open_run import open_run
    from agentworld_pipelines.retries import retried

    return retried(open_run, recipe, store, imitated)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def agent(recipe: str, store: str, imitated: str, run: str) -> str:
    """The agent, trained in the simulator alone."""
    from agentworld.steps.agent import agent
    from agentworld_pipelines.retries import retried

    return retried(agent, recipe, store, imitated, run)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def close_run(store: str, agent: str) -> str:
    """The run with the weights that it made."""
    from agentworld.steps.close_run import close_run
    from agentworld_pipelines.retries import retried

    return retried(close_run, store, agent)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def validate(recipe: str, store: str, imitated: str, agent: str, place: str = "") -> str:
    """The agent at each stage of its training, simulated and live."""
    from agentworld_pipelines.retries import retried
    from agentworld_pipelines.stages import live

    return retried(live, "validate", recipe, store, imitated, agent, place=place)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def register_agent(recipe: str, store: str, agent: str, closed: str, validation: str) -> str:
    """A version of the agent."""
    from agentworld.steps.register_agent import register_agent
    from agentworld_pipelines.retries import retried

    return retried(register_agent, recipe, store, agent, closed, validation)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def audit(store: str, registered: str, validation: str) -> str:
    """The chain from the agent back to its data."""
    from agentworld.steps.audit import audit
    from agentworld_pipelines.retries import retried

    return retried(audit, store, registered, validation)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def measure(recipe: str, store: str, simulator: str, job: str, place: str = "") -> str:
    """What is served, on fresh live episodes."""
    from agentworld_pipelines.retries import retried
    from agentworld_pipelines.stages import live

    return retried(live, "measure", recipe, store, simulator, job, place=place)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def conclude(
    pipeline: str, recipe: str, store: str, job: str, status: dsl.PipelineTaskFinalStatus
) -> str:
    """How the run ended, whatever happened."""
    from agentworld.steps.conclude import conclude
    from agentworld_pipelines.retries import retried

    return retried(conclude, pipeline, recipe, store, job, status)
