"""The success rules of a shell's tasks: transcript and files."""

import pytest

from agentworld.domains.shell.tasks import files_agree, outcome, solved_task
from agentworld.domains.start_files import parse_files
from agentworld.errors import InputError
from agentworld.records.task import SuccessRule
from make import records

RULE = SuccessRule(closing=r"cat\ tane\.txt", output="kolu\nbesa")


@pytest.mark.parametrize(
    ("files", "is_solved"),
    [
        ({"tane.txt": "kolu\nbesa"}, True),
        ({"a/tane.txt": "kolu\nbesa", "tane.txt": "x"}, True),
        ({"tane.txt": "kolu / besa"}, False),
        ({"tane.txt": "kolu"}, False),
        ({"xtane.txt": "kolu\nbesa", "tane.txt/": ""}, False),
        ({}, False),
    ],
)
def test_the_file_to_show_must_exist_with_the_expected_text(files, is_solved):
    assert files_agree(RULE, files) is is_solved


@pytest.mark.parametrize("closing", ["echo [a-z. ]+", "cat .*", r"cat\ \.hidden", r"cat\ /etc/x"])
def test_a_success_rule_without_a_file_in_the_home_is_not_checked(closing):
    assert files_agree(SuccessRule(closing=closing, output="kolu"), {}) is None


def test_start_files_never_satisfy_the_success_rule_of_their_task():
    tasks = [solved_task(seed, held_out=True).task for seed in range(100)]
    verdicts = {task.family: files_agree(task.success, {}) for task in tasks}
    assert verdicts == {"create": False, "edit": False, "find": None, "report": None}
    starts = [(task.success, parse_files(task.initial_state)) for task in tasks]
    assert not any(files_agree(success, files) for success, files in starts)


@pytest.mark.parametrize(
    ("action", "observation", "verdict"),
    [
        ("cat rimo.txt", "besa\n[0] ~", None),
        ("echo besa", "besa\n[0] ~", True),
        ("echo tane", "tane\n[0] ~", False),
        ("echo besa", "besa\nbesa\n[0] ~", False),
        ("echo besa", "besa", False),
        ("echo besa", "[0] ~", False),
        ("sudo echo besa", "besa\n[0] ~", None),
        ("echo besa\n", "besa\n[0] ~", None),
    ],
    ids=[
        "another action leaves it open",
        "the output it asked for",
        "another output",
        "more than it asked for",
        "no prompt line",
        "no output",
        "the whole action must match",
        "a line break is a part of the action",
    ],
)
def test_only_the_closing_action_with_the_exact_output_succeeds(action, observation, verdict):
    assert outcome(records.task(), action, observation) is verdict


def test_an_output_of_several_lines_is_compared_whole():
    task = records.task(success={"closing": "cat a", "output": "besa\ntane"})
    assert outcome(task, "cat a", "besa\ntane\n[0] ~") is True


@pytest.mark.compute
def test_a_closing_pattern_that_backtracks_is_stopped():
    closing = r"(x|x)*(x|x)*(x|x)*(.)\4y|(a?){40}a{40}"
    task = records.task(success={"closing": closing, "output": ""})
    with pytest.raises(InputError, match="takes more than"):
        outcome(task, "x" * 400, "[0] ~")


def test_the_task_of_a_seed_is_deterministic_and_of_the_shell_domain():
    assert solved_task(3, held_out=False) == solved_task(3, held_out=False)
    assert solved_task(3, held_out=False).task.domain == "shell"
    assert solved_task(3, held_out=True).task.id != solved_task(3, held_out=False).task.id


def test_a_task_without_a_goal_has_start_files_and_no_outcome():
    solved = solved_task(3, held_out=False, has_goal=False)
    assert solved == solved_task(3, held_out=False, has_goal=False)
    assert (solved.task.family, solved.steps) == ("explore", ())
    assert parse_files(solved.task.initial_state) == solved.files
    closings = [outcome(solved.task, action, "[0] ~") for action in ("", "ls", "echo kolu")]
    assert closings == [None] * 3
