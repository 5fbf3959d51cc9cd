"""Writes the reference from the code: `python tools/reference.py FOLDER`.

A page for the fields of a recipe, the commands, the errors with their codes, the variables that
each process reads from its environment, the forms of logs, the metrics, and the chart's values.
"""

import inspect
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import AliasChoices
from pydantic_settings import BaseSettings
from reference_chart import values
from reference_formats import formats
from reference_metrics import metrics
from reference_text import default, head, page, row
from typer.main import get_command

import agentworld_console.settings
import agentworld_operator.definitions
import agentworld_operator.first_secrets
import agentworld_operator.settings
import agentworld_pipelines.retries
import agentworld_pipelines.settings
from agentworld import errors
from agentworld.audit.questions.cost import Prices
from agentworld.client.credential import ClientSettings
from agentworld.http.errors import MEANINGS
from agentworld.operations import installed, registry
from agentworld.operations.lineage_events import LineageSettings
from agentworld.pinning import verifier
from agentworld.recipes import Recipe
from agentworld.recipes.ranks import Ranks
from agentworld.records.fields import all_field_words, describe_fields, type_words
from agentworld.runner import remote
from agentworld.serving import main as serving
from agentworld.serving.simulators.engines import Secrets
from agentworld.serving.telemetry.tracing import TracingSettings
from agentworld.storage.stores import Stores
from agentworld_cli.main import app, exit_code

_STEP = (
    remote.WorkingCopySettings,
    registry.RegistrySettings,
    LineageSettings,
    installed.ContainerSettings,
    ClientSettings,
    Stores,
)
PROCESSES: dict[str, tuple[str, Sequence[type[BaseSettings]]]] = {
    "agentworld": (
        "The command line.",
        (*_STEP, Prices, agentworld_pipelines.settings.ServerSettings),
    ),
    "A step of a pipeline": (
        "What the command line reads for a step, and what follows.",
        (
            agentworld_pipelines.retries.RetrySettings,
            agentworld_pipelines.settings.ClusterSettings,
            Ranks,
        ),
    ),
    "python -m agentworld.serving.main": (
        "The simulator service.",
        (serving.ServiceSettings, Secrets, TracingSettings),
    ),
    "python -m agentworld_console.main": (
        "The console; it also reads the variables of the stores and of the registry.",
        (agentworld_console.settings.ConsoleSettings,),
    ),
    "python -m agentworld_operator.main": (
        "The operator.",
        (
            agentworld_operator.settings.OperatorSettings,
            agentworld_operator.settings.WebhookSettings,
            agentworld_pipelines.settings.ServerSettings,
        ),
    ),
    "python -m agentworld_operator.first_secrets": (
        "The job that makes the Secrets.",
        (agentworld_operator.first_secrets.SecretSettings,),
    ),
    "python -m agentworld_operator.definitions": (
        "The job that upgrades the custom resource definitions.",
        (agentworld_operator.definitions.DefinitionSettings,),
    ),
    "python -m agentworld.pinning.verifier": (
        "The init container that checks an engine's weights.",
        (verifier.VerifierSettings,),
    ),
}


def recipe() -> str:
    """The fields of a recipe, a table for each section."""
    text = page(
        "Recipe fields",
        "A recipe is a YAML file with the settings of a job. Only `name` is required. `agentworld"
        " recipe show demo` prints a whole one, `agentworld recipe check FILE` names everything"
        " that is wrong in one, and `agentworld recipe fields cpt` prints a section of this page.",
    )
    section = None
    for field in describe_fields(Recipe):
        if (field_section := field.name.split(".")[0].removesuffix("[]")) != section:
            section = field_section
            text += f"\n## {section}\n\n" + head("field", "type", "default", "unit", "meaning")
        default_cell = "required" if field.required else f"`{json.dumps(field.default)}`"
        text += row(f"`{field.name}`", field.type, default_cell, field.unit, field.meaning)
    return text


def commands() -> str:
    """Every command with its arguments and options."""
    return page(
        "Commands",
        "`agentworld COMMAND --help` prints the same. Where a command takes `--json` it prints its"
        " result as JSON on stdout; errors are sentences on stderr, with the codes of"
        " [errors](errors.md).",
    ) + "".join(_command(get_command(app), "agentworld"))


def _command(command: Any, name: str) -> Iterator[str]:
    nested = getattr(command, "commands", None)
    if nested:
        for verb, subcommand in nested.items():
            yield from _command(subcommand, f"{name} {verb}")
        return
    text = "\n".join(line.strip() for line in command.help.splitlines()).strip()
    yield f"\n## {name}\n\n{text}\n\n" + head("argument or option", "default", "meaning")
    for parameter in command.params:
        defaults = (
            parameter.default
            if isinstance(parameter.default, list | tuple)
            else [parameter.default]
        )
        default_cell = (
            "required" if parameter.required else default(", ".join(map(_word, defaults)))
        )
        yield row(f"`{_usage(parameter)}`", default_cell, parameter.help or "")


def _usage(parameter: Any) -> str:
    choices = get_args(parameter.type_descriptor.annotation)
    words = parameter.metavar or "|".join(map(str, choices))
    if parameter.param_type_name == "option":
        return f"{'/'.join([*parameter.opts, *parameter.secondary_opts])} {words}".strip()
    return words or parameter.name.upper()


def _word(value: object) -> str:
    return "" if value in (None, False) else str(value)


def failures() -> str:
    """The classes of errors with their exit codes, and the answers of the service."""
    text = page(
        "Errors",
        "Each error is one sentence: what is wrong, the value, and what to do. A command ends with"
        " the code of its error's class; 0 is success, 1 a defect, and 2 also a word of the"
        " command line that cannot be read. An error that may be retried can pass by itself.",
    )
    text += "\n## Exit codes\n\n" + head("class", "code", "may be retried", "meaning")
    for kind in _classes(errors.AgentworldError):
        words = " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())
        text += row(
            f"`{kind.__name__}`", str(exit_code(kind)), "yes" if kind.retryable else "", words
        )
    text += "\n## Answers of the service\n\n" + head("HTTP status", "meaning")
    return text + "".join(row(str(status), words) for status, words in MEANINGS.items())


def _classes(kind: type[errors.AgentworldError]) -> Iterator[type[errors.AgentworldError]]:
    yield kind
    for subclass in kind.__subclasses__():
        if subclass.__module__ == errors.__name__:
            yield from _classes(subclass)


def environment() -> str:
    """The variables that each process reads."""
    text = page(
        "Environment variables",
        "What each process reads from its environment. Lists and mappings are written as JSON."
        " Libraries read variables of their own beside these, such as `HF_ENDPOINT`,"
        " `CUDA_VISIBLE_DEVICES`, `AWS_*` and `OTEL_*`.",
    )
    for process, (about, kinds) in PROCESSES.items():
        text += f"\n## {process}\n\n{about}\n\n" + head("variable", "type", "default", "meaning")
        for kind in kinds:
            text += "".join(_variables(kind))
    return text


def _variables(kind: type[BaseSettings]) -> Iterator[str]:
    words = all_field_words(kind)
    prefix = kind.model_config.get("env_prefix", "")
    for name, field in kind.model_fields.items():
        names = [f"{prefix}{name}".upper()]
        if isinstance(field.validation_alias, AliasChoices):
            names = [str(choice) for choice in field.validation_alias.choices]
        default_cell = "required" if field.is_required() else default(field.default)
        if kind is Stores:
            default_cell = "in `--store`"
        variable = " or ".join(f"`{alternative}`" for alternative in names)
        yield row(variable, type_words(field), default_cell, words.get(name, ""))


PAGES = {
    "recipe": recipe,
    "commands": commands,
    "errors": failures,
    "environment": environment,
    "formats": formats,
    "metrics": metrics,
    "values": values,
}


def main(folder: str) -> None:
    """Writes all pages into a folder."""
    for name, build_page in PAGES.items():
        (Path(folder) / f"{name}.md").write_text(build_page())


if __name__ == "__main__":
    main(*sys.argv[1:])
