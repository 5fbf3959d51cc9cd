"""The program: its commands, one file for each noun, and its exit codes.

Every error becomes one sentence on stderr and an exit code, here and for all commands. A file with
several invalid values has a sentence for each.
"""

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from agentworld import errors
from agentworld.errors import AgentworldError
from agentworld.runner.failure import StepFailed
from agentworld_cli import (
    agent,
    alias,
    api_key,
    audit,
    backup,
    console,
    cost,
    data,
    demo,
    domain,
    episode,
    evaluate,
    pipeline,
    recipe,
    run,
    signing_key,
    simulator,
    train,
    world_model,
)
from agentworld_cli.show import plain

# Disables model hubs' requests, usage reports and progress bars.
_QUIET = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
}

_EXIT_CODES: tuple[tuple[type[AgentworldError], int], ...] = (
    (errors.InputError, 2),
    (errors.EnvironmentFailure, 3),
    (errors.EngineError, 4),
    (errors.JudgeError, 5),
    (errors.SimulatorError, 6),
    (errors.StoreError, 7),
    (errors.EvidenceError, 8),
    (errors.AccessError, 9),
    (errors.ClusterError, 10),
    (errors.PipelineError, 11),
    (errors.Preempted, 12),
    (AgentworldError, 1),
)
_DEFECT = 1
_DISK = 7
_NOT_INSTALLED = 2

app = typer.Typer(
    help="Train world models, serve them as pinned simulators, train agents in them, audit both.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        print(f"agentworld {version('agentworld')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


app.command()(demo.demo)
app.add_typer(recipe.app, name="recipe")
app.add_typer(domain.app, name="domain")
app.add_typer(data.app, name="data")
app.add_typer(train.app, name="train")
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(world_model.app, name="world-model")
app.add_typer(simulator.app, name="simulator")
app.add_typer(run.app, name="run")
app.add_typer(episode.app, name="episode")
app.add_typer(agent.app, name="agent")
app.add_typer(alias.app, name="alias")
app.add_typer(audit.app, name="audit")
app.add_typer(backup.app, name="backup")
app.command()(console.console)
app.command()(cost.cost)
app.add_typer(api_key.app, name="api-key")
app.add_typer(signing_key.app, name="signing-key")
app.add_typer(pipeline.app, name="pipeline")


def main() -> None:
    """The program `agentworld`."""
    os.environ.update(_QUIET | os.environ)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # a library's warning is not meant for users
    with exit_on_error():
        # All errors have one format, including those of command lines.
        sys.exit(app(prog_name="agentworld", standalone_mode=False))


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Exits with a sentence for every known error; a bug keeps its traceback."""
    try:
        yield
    except StepFailed as error:
        _end(str(error), code=_code_of_name(error.kind))
    except errors.InvalidFile as error:
        _end(*error.problems, code=exit_code(type(error)))
    except typer.TyperException as error:
        _end_usage(error)
    except AgentworldError as error:
        _end(str(error), code=exit_code(type(error)))
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        extra = _extra_with(library)
        if not extra:
            raise
        _end(f"{library} is not installed here; install agentworld[{extra}]", code=_NOT_INSTALLED)
    except OSError as error:
        _end(_of_the_system(error), code=_DISK)


def _end(*sentences: str, code: int) -> NoReturn:
    for sentence in sentences:
        sys.stderr.write(f"error: {plain(one_line(sentence))}\n")
    sys.exit(code)


def _end_usage(error: typer.TyperException) -> NoReturn:
    """Exits after an invalid command line."""
    # A noun alone has printed its help already; typer has its own class of this name, too.
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.exit(error.exit_code)
    problem = " ".join(error.format_message().split())
    problem = problem.replace("Value error, ", "").replace("Input should", "it should")
    problem = re.sub(r" \(Possible options: (.*)\)", r"; did you mean \1", problem).rstrip(".?")
    problem = re.sub(r"\. ([A-Z])", lambda begin: f"; {begin[1].lower()}", problem)
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "agentworld"
    _end(f"{problem[0].lower()}{problem[1:]}; see `{command} --help`", code=error.exit_code)


def _extra_with(library: str) -> str:
    """Our extra that installs a library; empty if there is none."""
    from importlib.metadata import metadata

    from packaging.requirements import Requirement

    for line in metadata("agentworld").get_all("Requires-Dist", []):
        requirement = Requirement(line)
        if requirement.marker and requirement.name == library:
            return str(requirement.marker).rpartition("==")[2].strip(" '\"")
    return ""


def one_line(text: str) -> str:
    """The first line, and the last one if there are more, because a log is quoted for its end."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(dict.fromkeys((lines[0], lines[-1]))) if lines else ""


def _of_the_system(error: OSError) -> str:
    location = f"{error.filename}: " if error.filename else ""
    return f"{location}{error.strerror or error}; check the path, its owner and the free space"


def exit_code(kind: type[BaseException]) -> int:
    """The program's exit code for an error of this class."""
    return next((code for error, code in _EXIT_CODES if issubclass(kind, error)), _DEFECT)


def _code_of_name(name: str) -> int:
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, AgentworldError):
        return exit_code(kind)
    return _DISK if name == "OSError" else _DEFECT


if __name__ == "__main__":
    main()
