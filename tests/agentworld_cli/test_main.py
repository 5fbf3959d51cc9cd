import errno
import subprocess
import sys
from importlib.metadata import version

import pytest
import typer.main

from agentworld import errors
from agentworld.runner.failure import StepFailed
from agentworld_cli.main import app, exit_on_error, one_line

HEAVY = (
    "torch",
    "transformers",
    "trl",
    "mlflow",
    "kfp",
    "sqlalchemy",
    "fastapi",
    "pyarrow",
    "numpy",
    "openlineage",
)

COMMANDS = {
    "demo": "as_json recipe store",
    "evaluate stages": "as_json cpt data recipe rl sft store",
    "evaluate served": "as_json job recipe simulator store",
    "data collect": "as_json domain options recipe store",
    "data import": "as_json domain explain form options recipe source store strict",
    "data prepare": "as_json collected recipe store",
    "data traces": "as_json data recipe store",
    "data list": "as_json store",
    "data show": "as_json data store",
    "data diff": "as_json first second store",
    "data register": "as_json data store",
    "data inspect": "as_json data out store",
    "recipe list": "as_json",
    "recipe show": "as_json recipe",
    "recipe fields": "as_json section",
    "recipe check": "as_json recipe",
    "domain list": "as_json",
    "domain show": "as_json domain",
    "domain install": "as_json domain",
    "domain try": "as_json domain seed simulator store task url",
    "train plan": "as_json gpus model node_memory price recipe stage tokens tokens_per_second",
    "train cpt": "as_json data recipe store",
    "train sft": "as_json data parent recipe store traces",
    "train rl": "as_json data parent recipe store",
    "train imitate": "as_json collected recipe simulator store",
    "train agent": "as_json imitated recipe store",
    "world-model list": "as_json store",
    "world-model register": "as_json cpt recipe report rl sft store",
    "world-model show": "as_json store version",
    "simulator pin": "as_json recipe store version",
    "simulator import": "as_json domains model recipe store text",
    "simulator prompt": "as_json domains endpoint model recipe store text",
    "simulator attach": "as_json report simulator store",
    "simulator show": "as_json model_signing simulator store",
    "simulator list": "as_json store",
    "simulator verify": "as_json simulator store",
    "simulator serve": "access concurrency port simulator store",
    "run open": "as_json by name simulator url weights",
    "run close": "as_json run signature url weights",
    "run list": "as_json store",
    "run show": "as_json run store url",
    "run verify": "as_json run store",
    "run join": "as_json run store trajectory",
    "run export": "as_json out run store trajectory",
    "episode list": "as_json run store",
    "episode show": "as_json episode store url",
    "episode verify": "as_json episode store",
    "episode fork": "as_json episode run step url",
    "episode replay": "as_json episode url",
    "episode close": "episode url",
    "episode erase": "as_json episode store yes",
    "agent validate": "agent as_json imitated recipe simulator store",
    "agent register": "agent as_json recipe store validation",
    "agent adopt": "as_json model name run store",
    "agent list": "as_json store",
    "alias set": "alias as_json by gate_report gates override reason store target",
    "alias end": "alias as_json by reason store",
    "alias show": "alias as_json store",
    "alias list": "as_json store",
    "audit agent": "as_json at store verify version",
    "audit simulator": "as_json at digest store verify",
    "audit dataset": "as_json at digest store",
    "audit alias": "as_json at name store",
    "audit diff": "as_json at first second store",
    "audit verify": "as_json at store version",
    "audit export": "at form out sign store version",
    "backup begin": "destination folder store",
    "backup finish": "as_json destination folder keep store",
    "backup list": "as_json destination",
    "backup restore": "destination folder name store",
    "backup verify": "destination name",
    "console": "access host port store",
    "audit restored": "as_json reason store",
    "audit withdrawn": "as_json reason store versions",
    "cost": "as_json episode group_by run store tenant",
    "api-key new": "as_json roles",
    "signing-key list": "as_json owner store",
    "signing-key rotate": "as_json owner store",
    "pipeline compile": "image name out placement stages",
    "pipeline run": "as_json image pipeline placement recipe server simulator stages store wait",
    "pipeline schedule": (
        "as_json cron image name pipeline placement recipe server simulator stages store"
    ),
    "pipeline list": "as_json server",
    "pipeline check": "as_json kubeflow_namespace server",
    "pipeline stop": "as_json name server",
    "pipeline history": "as_json store",
}


def commands() -> dict[str, list]:
    """Every command with its options and arguments."""
    params_by_command = {}
    group = typer.main.get_command(app)
    for noun, command in group.commands.items():
        subcommands = getattr(command, "commands", {"": command})
        params_by_command |= {
            f"{noun} {verb}".strip(): leaf.params for verb, leaf in subcommands.items()
        }
    return params_by_command


def test_commands_have_exactly_the_listed_options():
    names = {
        command: " ".join(sorted(param.name for param in params))
        for command, params in commands().items()
    }
    assert names == COMMANDS


@pytest.mark.parametrize(
    "command", [name for name, words in COMMANDS.items() if "as_json" in words]
)
def test_commands_that_print_a_result_accept_json(command):
    (option,) = [param for param in commands()[command] if param.name == "as_json"]
    assert option.opts == ["--json"]


@pytest.mark.compute
def test_importing_the_cli_imports_no_heavy_library():
    code = f"import sys, agentworld_cli.main; print(sorted({set(HEAVY)!r} & set(sys.modules)))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_the_version_option_prints_the_package_version(call):
    assert call("--version").out == f"agentworld {version('agentworld')}\n"


def test_the_recipe_and_store_options_have_the_same_name_in_every_command():
    for name in ("recipe", "store"):
        options = {
            tuple(param.opts)
            for params in commands().values()
            for param in params
            if param.name == name and param.param_type_name == "option"
        }
        assert options == {(f"--{name}",)}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InputError("no"), 2),
        (errors.NotFound("no"), 2),
        (errors.EnvironmentUnavailable("no"), 3),
        (errors.EnvironmentBroken("no"), 3),
        (errors.EngineError("no"), 4),
        (errors.JudgeError("no"), 5),
        (errors.SimulatorError("no"), 6),
        (errors.StoreError("no"), 7),
        (errors.EvidenceError("no"), 8),
        (errors.AccessError("no"), 9),
        (errors.PipelineError("no"), 11),
        (errors.Preempted("no"), 12),
        (errors.AgentworldError("no"), 1),
        (StepFailed("cpt", "EngineError", "no"), 4),
        (StepFailed("cpt", "ZeroDivisionError", "no"), 1),
        (OSError(errno.ENOSPC, "No space left on device", "/full/file"), 7),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value),
)
def test_an_error_prints_one_sentence_and_sets_its_exit_code(capsys, error, code):
    with pytest.raises(SystemExit) as exit_info, exit_on_error():
        raise error
    assert exit_info.value.code == code
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert message.count("\n") == 1


def test_every_error_class_has_its_own_exit_code():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    error_classes = [kind for kind in kinds if kind.__mro__[1] is errors.AgentworldError]
    codes = set()
    for error_class in error_classes:
        with pytest.raises(SystemExit) as exit_info, exit_on_error():
            raise error_class("no")
        codes.add(exit_info.value.code)
    assert len(codes) == len(error_classes) == 11


def test_the_error_names_a_failed_step(capsys):
    with pytest.raises(SystemExit), exit_on_error():
        raise StepFailed("cpt", "InputError", "the data are gone; prepare them")
    assert capsys.readouterr().err == "error: cpt stopped: the data are gone; prepare them\n"


def test_an_os_error_names_its_file(capsys):
    with pytest.raises(SystemExit), exit_on_error():
        raise PermissionError(errno.EACCES, "Permission denied", "/root/file")
    assert "/root/file: Permission denied" in capsys.readouterr().err


def test_a_missing_library_is_reported_with_the_extra_to_install(capsys):
    with pytest.raises(SystemExit) as exit_info, exit_on_error():
        raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")
    assert exit_info.value.code == 2
    message = capsys.readouterr().err
    assert message == "error: torch is not installed here; install agentworld[train]\n"


def test_a_missing_agentworld_module_raises_module_not_found_error():
    with pytest.raises(ModuleNotFoundError), exit_on_error():
        raise ModuleNotFoundError("No module named 'agentworld.gone'", name="agentworld.gone")


def test_an_error_with_a_log_is_reduced_to_the_last_log_line():
    assert (
        one_line("the engine died; the log says:\n a\n  b\n") == "the engine died; the log says: b"
    )


def test_an_unexpected_exception_is_not_caught():
    with pytest.raises(ZeroDivisionError), exit_on_error():
        raise ZeroDivisionError
