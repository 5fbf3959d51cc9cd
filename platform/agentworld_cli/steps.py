"""A command for each step with a command in the table; its inputs are the options."""

from collections.abc import Callable, Collection
from inspect import Parameter, Signature
from typing import Annotated

import typer

from agentworld.runner.declaration import Input, Step
from agentworld.steps.table import STEPS
from agentworld_cli.show import DEFAULT_RECIPE, DEFAULT_STORE, AnyStore, Json, RecipeName, show_step


def add_steps(app: typer.Typer, noun: str, excluded: Collection[str] = ()) -> None:
    """Adds the commands of a noun, except those that run more than one step."""
    for step in STEPS.values():
        group, _, name = step.command.partition(" ")
        if group == noun and name not in excluded:
            app.command(name)(_command(step))


def folder_help(step: str) -> str:
    """The command that creates the folder of a step."""
    command = STEPS[step].command
    return f"The folder of a finished `{command}`." if command else f"The folder of step {step}."


def _command(step: Step) -> Callable[..., None]:
    def command(recipe: str, store: str, *, as_json: bool, **inputs: str) -> None:
        from agentworld.steps.run import run_by_name

        values = [inputs[step_input.name] for step_input in step.inputs]
        show_step(run_by_name, step.name, recipe, store, *values, as_json=as_json)

    parameters = [
        *map(_parameter, step.inputs),
        _keyword("recipe", RecipeName, DEFAULT_RECIPE),
        _keyword("store", AnyStore, DEFAULT_STORE),
        _keyword("as_json", Json, default=False),
    ]
    command.__doc__ = step.does
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    setattr(command, "__signature__", Signature(parameters))  # noqa: B010 - mypy knows no such field
    return command


def _parameter(declared: Input) -> Parameter:
    metavar = "FOLDER" if declared.step else declared.name.upper()
    help_ = folder_help(declared.step) if declared.step else declared.help
    option = Annotated[str, typer.Option(metavar=metavar, help=help_)]
    return _keyword(declared.name, option, declared.default)


def _keyword(name: str, annotation: object, default: object) -> Parameter:
    """An option; a null default makes it required."""
    value = Parameter.empty if default is None else default
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=value)
