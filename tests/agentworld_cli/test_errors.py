import errno

import pytest

from agentworld import errors
from agentworld_cli.errors import StepFailed, exit_on_error, one_line


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
def test_an_error_is_one_sentence_and_an_exit_code(capsys, error, code):
    with pytest.raises(SystemExit) as ended, exit_on_error():
        raise error
    assert ended.value.code == code
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1


def test_every_kind_of_error_has_a_code_of_its_own_room():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    rooms = [kind for kind in kinds if kind.__mro__[1] is errors.AgentworldError]
    codes = set()
    for room in rooms:
        with pytest.raises(SystemExit) as ended, exit_on_error():
            raise room("no")
        codes.add(ended.value.code)
    assert len(codes) == len(rooms) == 11


def test_a_step_that_failed_is_named(capsys):
    with pytest.raises(SystemExit), exit_on_error():
        raise StepFailed("cpt", "InputError", "the data are gone; prepare them")
    assert capsys.readouterr().err == "error: cpt stopped: the data are gone; prepare them\n"


def test_a_file_of_the_system_is_named(capsys):
    with pytest.raises(SystemExit), exit_on_error():
        raise PermissionError(errno.EACCES, "Permission denied", "/root/file")
    assert "/root/file: Permission denied" in capsys.readouterr().err


def test_a_library_that_is_not_installed_is_named_with_the_extra_that_brings_it(capsys):
    with pytest.raises(SystemExit) as ended, exit_on_error():
        raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == "error: torch is not installed here; install agentworld[train]\n"


def test_a_module_of_ours_that_is_gone_is_a_defect():
    with pytest.raises(ModuleNotFoundError), exit_on_error():
        raise ModuleNotFoundError("No module named 'agentworld.gone'", name="agentworld.gone")


def test_the_end_of_a_log_is_told_in_a_line():
    assert (
        one_line("the engine died; the log says:\n a\n  b\n") == "the engine died; the log says: b"
    )


def test_a_defect_keeps_its_trace():
    with pytest.raises(ZeroDivisionError), exit_on_error():
        raise ZeroDivisionError
