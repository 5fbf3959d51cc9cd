"""A Kubeflow component for each step: the project's image, and one call.

A component outputs the folder of its step. The receipt in that folder, and not Kubeflow's cache,
decides whether the step has to run. Kubeflow copies a component's source into the pipeline's file
and runs it without the rest of its module, so each step's source is generated here.
"""

# mypy: disable-error-code="untyped-decorator, valid-type"

import linecache
from collections.abc import Callable
from typing import NamedTuple

from kfp import dsl
from kfp.dsl.base_component import BaseComponent

from agentworld.runner.declaration import Input, Kind, Step
from agentworld.steps.table import CONCLUDE, STEPS

IMAGE = "agentworld:0.1.0"
"""Built from this repository; a cluster sets its own copy when it compiles the pipeline."""

_TEXT = '''
def {name}({parameters}) -> str:
    """{does}"""
    from agentworld_pipelines.retries import call_with_retries
    from {module} import {function}

    return call_with_retries({function}, "{name}", {arguments})
'''

_STAGES = "agentworld_pipelines.stages"
_FUNCTIONS: dict[Kind, tuple[str, str]] = {
    "plain": ("agentworld.steps.run", "run_by_name"),
    "training": (_STAGES, "train"),
    "live": (_STAGES, "live"),
    "deployment": (_STAGES, "deploy"),
}
"""The module and the function that run the steps of a kind."""

_component = dsl.component(base_image=IMAGE, install_kfp_package=False)


# The verdict has the name of the other components' only output: kfp.local finds a condition's value
# under that name alone, and takes it for false otherwise. A plain tuple is read by its order.
@_component
def gate(recipe: str, store: str, report: str) -> NamedTuple(
    "Verdict", [("folder", str), ("Output", str), ("reason", str)]
):
    """Whether the world model may go on."""
    from agentworld_pipelines.retries import call_with_retries
    from agentworld_pipelines.stages import decide

    return tuple(call_with_retries(decide, recipe, store, report))


@_component
def conclude(
    pipeline: str, recipe: str, store: str, job: str, status: dsl.PipelineTaskFinalStatus
) -> str:
    """How the run ended, whatever happened."""
    from agentworld.steps.conclude import conclude
    from agentworld_pipelines.retries import call_with_retries

    return call_with_retries(conclude, pipeline, recipe, store, job, status)


def _component_of(step: Step) -> BaseComponent:
    """`place` is an argument if the step may run outside of its own pod."""
    parameters = ["recipe: str", "store: str", *map(_parameter, step.inputs)]
    arguments = ["recipe", "store", *(step_input.name for step_input in step.inputs)]
    if step.kind != "plain":
        parameters, arguments = [*parameters, 'place: str = ""'], [*arguments, "place=place"]
    module, function = _FUNCTIONS[step.kind]
    text = _TEXT.format(
        name=step.name,
        does=step.does,
        parameters=", ".join(parameters),
        arguments=", ".join(arguments),
        module=module,
        function=function,
    )
    return _component(_define(step.name, text))


def _parameter(step_input: Input) -> str:
    default = "" if step_input.default is None else f" = {step_input.default!r}"
    return f"{step_input.name}: str{default}"


def _define(name: str, text: str) -> Callable[..., str]:
    """The function of a source text; `inspect`, which Kubeflow uses, finds the text."""
    file = f"<component {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    namespace: dict[str, Callable[..., str]] = {}
    exec(compile(text, file, "exec"), namespace)  # noqa: S102 - the text is ours
    return namespace[name]


COMPONENTS: dict[str, BaseComponent] = {
    **{name: _component_of(step) for name, step in STEPS.items()},
    "gate": gate,
    CONCLUDE: conclude,
}
