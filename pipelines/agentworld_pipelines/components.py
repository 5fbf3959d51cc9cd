"""One component for each step: the project's image, and one call.

A component hands on the folder of its step by name. The receipt in that folder, and not
Kubeflow's cache, says whether the step has to run.
"""

from kfp import dsl

IMAGE = "agentworld:0.1.0"
"""Built from this repository; a cluster names its own copy when it compiles the pipeline."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def collect(recipe: str, store: str) -> str:
    """Live episodes."""
    from agentworld.steps import collect

    return collect.collect(recipe, store)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def prepare(recipe: str, store: str, collected: str) -> str:
    """Pools of samples."""
    from agentworld.steps import prepare

    return prepare.prepare(recipe, store, collected)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def cpt(recipe: str, store: str, data: str) -> str:
    """Continual pre-training."""
    from agentworld.steps import cpt

    return cpt.cpt(recipe, store, data)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def sft(recipe: str, store: str, data: str, parent: str) -> str:
    """Supervised fine-tuning."""
    from agentworld.steps import sft

    return sft.sft(recipe, store, data, parent)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def rl(recipe: str, store: str, data: str, parent: str) -> str:
    """RL of the world model."""
    from agentworld.steps import rl

    return rl.rl(recipe, store, data, parent)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def evaluate(recipe: str, store: str, data: str, cpt: str, sft: str, rl: str) -> str:
    """The stages and two baselines on held-out live episodes."""
    from agentworld.steps import evaluate

    return evaluate.evaluate(recipe, store, data, cpt, sft, rl)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def register(recipe: str, store: str, cpt: str, sft: str, rl: str, report: str) -> str:
    """A version of the world model."""
    from agentworld.steps import register

    return register.register(recipe, store, cpt, sft, rl, report)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def simulate(recipe: str, store: str, version: str) -> str:
    """A pinned simulator."""
    from agentworld.steps import simulate

    return simulate.simulate(recipe, store, version)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def agent(recipe: str, store: str, collected: str, simulator: str) -> str:
    """An agent, trained in the simulator alone."""
    from agentworld.steps import agent

    return agent.agent(recipe, store, collected, simulator)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def validate(recipe: str, store: str, simulator: str, agent: str) -> str:
    """The agent before and after, simulated and live."""
    from agentworld.steps import validate

    return validate.validate(recipe, store, simulator, agent)


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def audit(recipe: str, store: str, agent: str, validation: str) -> str:
    """The chain from the agent back to its data."""
    from agentworld.steps import audit

    return audit.audit(recipe, store, agent, validation)
