"""Live terminals in sandboxes."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from random import Random

import pytest

from agentworld.domains.base import domain_of
from agentworld.domains.guard import LiveEnvironmentRefused
from agentworld.domains.live import (
    LiveSettings,
    live_domain,
    no_environment,
    open_environment,
)
from agentworld.domains.sandbox import can_show_processes
from agentworld.domains.terminal.environment import TerminalEnvironment
from agentworld.domains.terminal.keys import is_refusal
from agentworld.domains.terminal.tasks import solved_task
from agentworld.errors import EnvironmentBroken, InputError
from make import records
from make.recorded_twice import patient

pytestmark = pytest.mark.waits

LIVE, TERMINAL = live_domain("terminal"), domain_of("terminal")
PROMPT = "agent@world:~$"
TASK = records.task(initial_state="a.txt: kolu / tane")
UNCHANGED_TASK = records.task(success={"closing": "x", "output": "", "state": "a.txt: kolu / tane"})
EDIT_TASK = records.task(success={"closing": "x", "output": "", "state": "a.txt: kolu besa / tane"})


def keys(*texts, duration=30.0):
    return json.dumps([{"keystrokes": text, "duration": duration} for text in texts])


def in_terminal(work, seconds=60.0):
    async def run_work():
        async with open_environment("terminal", LiveSettings(step_seconds=seconds)) as environment:
            return await work(environment)

    return asyncio.run(run_work())


async def screens(environment, *actions):
    await environment.reset(TASK)
    return [(await environment.step(action)).text for action in actions]


def test_a_command_returns_its_screen_once_the_shell_waits_for_input():
    observations = in_terminal(
        lambda environment: screens(environment, keys("cat a.t"), keys("xt\n", "echo $?\n"), "[]")
    )
    screen = f"{PROMPT} cat a.txt\nkolu\ntane\n{PROMPT} echo $?\n0\n{PROMPT}"
    assert observations == [f"{PROMPT} cat a.t", screen, screen]


async def wait_until(environment, *texts):
    """The screen once it shows all of these texts, which may appear one after the other."""
    for _ in range(600):
        observation = await environment.step(keys("", duration=0.05))
        if all(text in observation.text for text in texts):
            return observation.text
    raise AssertionError(f"{texts} were never shown")


def test_keys_are_sent_to_the_running_program():
    async def work(environment):
        await environment.reset(TASK)
        command = "bash -c 'read -p \"who? \" name; echo you $name'"
        await environment.step(keys(f"{command}\n", duration=0))
        question = await wait_until(environment, "\nwho?")
        return question, (await environment.step(keys("rimo\n"))).text

    question, answer = in_terminal(work)
    assert question.endswith("\nwho?")
    assert answer == f"{question} rimo\nyou rimo\n{PROMPT}"


@pytest.mark.parametrize("disposition", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_program_runs_beyond_its_step_until_a_control_key_interrupts(disposition):
    # The program's output comes after the shell has put the program into the foreground.
    program = "sh -c 'echo started; exec sleep 1000'\n"

    async def work(environment):
        await environment.reset(TASK)
        await environment.step(keys(program, duration=0.1))
        await wait_until(environment, "\nstarted")
        await environment.step(keys("C-c"))
        return (await environment.step(keys("echo over\n"))).text

    previous = signal.signal(signal.SIGINT, disposition)
    try:
        assert in_terminal(work).endswith(f"over\n{PROMPT}")
    finally:
        signal.signal(signal.SIGINT, previous)


def test_an_unknown_full_screen_program_controls_the_whole_screen():
    dialog = "import curses; curses.wrapper(lambda s: (s.addstr(5, 9, 'hello'), s.getkey()))"

    async def work(environment):
        await environment.reset(TASK)
        await environment.step(keys(f'python3 -c "{dialog}"\n', duration=0))
        program_screen = await wait_until(environment, "\n         hello")
        return program_screen, (await environment.step(keys("q"))).text

    program_screen, last_screen = in_terminal(work)
    assert program_screen == "\n" * 5 + " " * 9 + "hello"
    assert last_screen.endswith(PROMPT)


def test_vi_edits_and_saves_a_file():
    async def work(environment):
        await environment.reset(TASK)
        await environment.step(keys("vi a.txt\n", duration=0))
        await wait_until(environment, "kolu\ntane\n~", '"a.txt" 2L, 10B')
        await environment.step(keys("A besa", "Escape", duration=0))
        await environment.step(keys(":wq\n"))
        observation = await environment.step(keys("clear; cat a.txt\n"))
        return observation.text, await environment.check(EDIT_TASK)

    screen, is_done = in_terminal(work)
    assert screen == f"kolu besa\ntane\n{PROMPT}"
    assert is_done


def test_less_pages_and_quits():
    actions = [keys(text) for text in ("seq 100 > n\n", "less n\n", "Space", "q")]
    *_, first, second, last_screen = in_terminal(lambda environment: screens(environment, *actions))
    assert first.split("\n") == [*map(str, range(1, 40)), "n"]
    assert second.split("\n") == [*map(str, range(40, 79)), ":"]
    assert last_screen.split("\n") == [*map(str, range(40, 79)), PROMPT]


def test_a_step_in_python_ends_when_python_waits_for_a_line():
    actions = [keys(text) for text in ("python3 -q\n", "6 * 7\n", "C-d")]
    first, second, third = in_terminal(lambda environment: screens(environment, *actions))
    assert first == f"{PROMPT} python3 -q\n>>>"
    assert second == f"{first} 6 * 7\n42\n>>>"
    assert third == f"{second}\n{PROMPT}"


def test_top_shows_only_processes_of_the_sandbox_and_quits():
    assert can_show_processes(), "this machine gives a sandbox no /proc: it covers parts of its own"

    async def work(environment):
        await environment.reset(TASK)
        await environment.step(keys("top\n", duration=0))
        top_screen = await wait_until(environment, "COMMAND", " bash", " top")
        last_screen = (await environment.step(keys("q"))).text
        is_unchanged = await environment.check(UNCHANGED_TASK)
        return top_screen, last_screen, is_unchanged, await screens(environment, keys("ls -A\n"))

    top_screen, last_screen, is_unchanged, next_screens = in_terminal(work)
    names = [line.split()[-1] for line in top_screen.split("\n")[7:]]
    assert {*names} == {"bash", "top"}
    assert last_screen.endswith(f"\n{PROMPT}")
    assert is_unchanged is True
    assert next_screens == [f"{PROMPT} ls -A\na.txt\n{PROMPT}"]


def test_the_state_lists_hidden_files_and_the_check_ignores_only_program_files():
    async def work(environment):
        await environment.reset(TASK)
        await environment.step(keys("python3 -q\n", "C-d", duration=30))
        before = await environment.check(UNCHANGED_TASK)
        await environment.step(keys("echo kolu > .hidden; mkdir -p .a/.b\n"))
        return before, await environment.state(), await environment.check(UNCHANGED_TASK)

    before, state, after = in_terminal(work)
    assert (before, after) == (True, False)
    lines = state.split("\n")
    assert {".a/.b/: ", ".hidden: kolu", "a.txt: kolu / tane"} <= {*lines}
    assert any(line.startswith(".python_history") for line in lines)


def test_a_malformed_action_is_refused_with_a_reason_and_the_episode_continues():
    refusal, screen = in_terminal(lambda environment: screens(environment, "ls", keys("ls\n")))
    assert is_refusal(refusal)
    assert screen == f"{PROMPT} ls\na.txt\n{PROMPT}"


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (keys("exit\n"), "has ended or was stopped"),
        (keys("kill -9 $$\n"), "has ended or was stopped"),
        (keys("kill -STOP $$\n"), "has ended or was stopped"),
        (keys("yes\n"), "more than 16777216 bytes"),
    ],
)
def test_a_fault_breaks_the_episode_and_the_next_episode_is_clean(action, reason):
    async def work(environment):
        await environment.reset(TASK)
        await environment.step(keys("touch new\n"))
        with pytest.raises(EnvironmentBroken, match=reason):
            await environment.step(action)
        with pytest.raises(EnvironmentBroken, match="no episode is open"):
            await environment.step(keys("ls\n"))
        return await screens(environment, keys("ls; jobs\n"))

    assert in_terminal(work) == [f"{PROMPT} ls; jobs\na.txt\n{PROMPT}"]


def test_a_long_output_is_read_to_its_end():
    (screen,) = in_terminal(lambda environment: screens(environment, keys("seq 50000\n")))
    assert screen.split("\n") == [*map(str, range(50000 - 38, 50001)), PROMPT]


def test_a_screen_stopped_with_ctrl_s_continues_with_ctrl_q():
    async def work(environment):
        await environment.reset(TASK)
        await environment.step(keys("stty ixon; echo ready; cat\n", duration=0))
        await wait_until(environment, "\nready")
        observation = await environment.step(keys("C-s", "kolu\n", duration=0.1))
        await environment.step(keys("C-q", duration=0))
        return observation.text, await wait_until(environment, "kolu")

    stopped_screen, screen = in_terminal(work)
    assert stopped_screen.endswith("\nready")
    assert "\nready\nkolu" in screen


@pytest.mark.parametrize("seed", range(12))
def test_the_solution_of_a_task_succeeds_live_and_by_its_transcript(seed):
    solved = solved_task(seed, held_out=True)

    async def work(environment):
        await environment.reset(solved.task)
        before = await environment.check(solved.task)
        for action in solved.steps:
            observation = await environment.step(action)
        outcome = TERMINAL.outcome(solved.task, solved.steps[-1], observation.text)
        return before, outcome, await environment.check(solved.task)

    assert in_terminal(work) == (False, True, True)


def test_success_is_checked_in_files_and_not_in_printed_output():
    solved = solved_task(0, held_out=False)
    rule = solved.task.success

    async def work(environment):
        await environment.reset(solved.task)
        await environment.step(keys(f"clear; printf %s '{rule.output}'\n"))
        return await environment.state(), await environment.check(solved.task)

    assert in_terminal(work) == (solved.task.initial_state, False)


def task_of(family):
    tasks = (LIVE.task(seed, held_out=False) for seed in range(100))
    return next(task for task in tasks if task.family == family)


def test_lines_joined_by_a_slash_do_not_solve_an_append_task():
    task = task_of("append")
    _, line, name = re.fullmatch(r"(append) (.*) to (\S+)", task.instruction).groups()

    async def work(environment):
        await environment.reset(task)
        await environment.step(keys(f"echo $(cat {name}) / {line} > {name}\n"))
        return await environment.state() == task.success.state, await environment.check(task)

    assert in_terminal(work) == (True, False)


def test_a_copy_beside_the_unreadable_original_does_not_solve_a_rename_task():
    task = task_of("rename")
    old_name, new_name = re.fullmatch(r"rename (\S+) to (\S+)", task.instruction).groups()

    async def work(environment):
        await environment.reset(task)
        await environment.step(keys(f"cp {old_name} {new_name}; chmod 000 {old_name}\n"))
        return await environment.check(task)

    assert in_terminal(work) is False


def test_actions_recorded_twice_show_the_same_screens():
    async def record(environment, seed):
        task = LIVE.task(seed, held_out=False)
        start = await environment.reset(task)
        explorer = LIVE.explorer(
            Random(seed), start, task, held_out=False, pursues_task=True, num_turns=8
        )
        observations = []
        while (action := explorer.act(None)) is not None:
            observations.append((await environment.step(patient(action))).text)
        return [TERMINAL.mask_volatile(TERMINAL.normalise(screen)) for screen in observations]

    async def work(environment):
        return [[await record(environment, seed) for _ in range(2)] for seed in range(12)]

    assert all(first == second for first, second in in_terminal(work))


def test_no_terminal_opens_while_an_agent_trains_in_a_simulator():
    with no_environment() as guard, pytest.raises(LiveEnvironmentRefused):
        in_terminal(lambda environment: environment.reset(TASK))
    assert guard.num_refused == 1


def test_terminal_environments_refuse_options():
    with pytest.raises(InputError, match="no options width"):
        LIVE.open(LiveSettings(options={"width": 80}))


def test_the_environment_module_does_not_import_the_sandbox():
    code = f"import sys, {TerminalEnvironment.__module__}; print(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "agentworld.domains.terminal.session" in process.stdout
    assert "agentworld.domains.sandbox" not in process.stdout
