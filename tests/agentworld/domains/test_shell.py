import shlex
import time
from contextlib import suppress

import psutil
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentworld.domains.sandbox import SandboxLimits
from agentworld.domains.terminal.shell import LiveShell
from agentworld.domains.terminal.start import describe_files
from agentworld.errors import SandboxBroken
from waiting import wait_for


@pytest.fixture(scope="module")
def opened():
    with LiveShell() as shell:
        yield shell


def names_of_own_processes():
    """Of all that this process started, in sandboxes too."""
    names = []
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            names.append(each.name())
    return names


@pytest.fixture
def shell(opened):
    opened.reset({"rimo.txt": "kolu\ntane\n", "besa/lomi.txt": "gudo\n"})
    return opened


def test_an_observation_is_output_and_a_prompt_line(shell):
    assert shell.step("cat rimo.txt") == "kolu\ntane\n[0] ~"
    assert shell.step("cd besa") == "[0] ~/besa"
    assert shell.step("cat rimo.txt") == "cat: rimo.txt: No such file or directory\n[1] ~/besa"


def test_an_episode_begins_at_home_with_its_files_and_status_zero(shell):
    shell.step("cd besa; export A=kolu; rm lomi.txt; false")
    shell.reset({"tane.txt": "a 'b' $c\n", "new/": ""})
    assert shell.step("echo $? $A") == "0\n[0] ~"
    assert shell.step("ls; cat tane.txt") == "new\ntane.txt\na 'b' $c\n[0] ~"


def test_output_without_a_newline_at_its_end_is_whole(shell):
    assert shell.step("printf kolu") == "kolu\n[0] ~"


@pytest.mark.parametrize(
    ("action", "observation"),
    [
        ("", "[0] ~"),
        ("if", "bash: syntax error: unexpected end of file\n[2] ~"),
        ("echo 'a", "bash: unexpected EOF while looking for matching `''\n[0] ~"),
        ("cat", "[0] ~"),
        ("echo a\necho b", "a\nb\n[0] ~"),
        ("echo hi!", "hi!\n[0] ~"),
        ("kolu", "bash: kolu: command not found\n[127] ~"),
    ],
    ids=["empty", "half a command", "open quote", "waits for input", "two lines", "!", "unknown"],
)
def test_no_command_can_confuse_the_shell(shell, action, observation):
    assert shell.step(action) == observation
    assert shell.step("echo on") == "on\n[0] ~"


def test_the_harness_does_not_show_in_the_history(shell):
    assert shell.step("history") == "[0] ~"


@pytest.mark.parametrize(
    ("command", "why"),
    [pytest.param("sleep 60", "took too long", marks=pytest.mark.slow),
     pytest.param("while :; do :; done", "took too long", marks=pytest.mark.slow),
     ("yes", "printed too much"), ("exit", "left the shell"), ("exec true", "left the shell"),
     ("kill -9 $$", "left the shell"), ("kill -9 $PPID; sleep 9", "ended the sandbox")],
)  # fmt: skip
def test_what_is_over_says_why(command, why):
    with LiveShell(seconds=1.0) as shell:
        shell.reset()
        with pytest.raises(SandboxBroken, match=why):
            shell.step(command)


def test_a_shell_that_was_left_is_noticed_at_once():
    with LiveShell(seconds=30) as shell:
        shell.reset()
        started = time.monotonic()
        with pytest.raises(SandboxBroken):
            shell.step("exit")
        assert time.monotonic() - started < 10


def test_a_broken_shell_stays_broken():
    with LiveShell() as shell:
        shell.reset()
        shell.close()
        with pytest.raises((SandboxBroken, ValueError)):
            shell.step("ls")


def test_commands_are_counted_and_nothing_else_is():
    with LiveShell() as shell:
        shell.reset({"rimo.txt": "a\n"})
        shell.step("ls")
        shell.state()
        shell.reset()
        shell.step("ls")
        assert shell.num_steps == 2


def test_files_that_do_not_fit_are_no_episode():
    small = LiveShell(SandboxLimits(disk_bytes=1 << 16))
    with small as shell, pytest.raises(SandboxBroken, match="files could not be written"):
        shell.reset({"rimo.txt": "kolu " * 20_000})


def test_the_state_is_told_as_an_episodes_start_is(shell):
    files = {"rimo.txt": "kolu\ntane\n", "besa/lomi.txt": "gudo\n"}
    assert shell.state() == describe_files(files)
    shell.step("rm rimo.txt; mkdir -p new/deep; echo a >> besa/lomi.txt; echo b > .hidden")
    assert shell.state() == describe_files({"besa/lomi.txt": "gudo\na\n", "new/deep/": ""})
    shell.step("cd besa")
    assert shell.state() == "lomi.txt: gudo / a"
    shell.step("cd ../new/deep")
    assert shell.state() == "empty"


@pytest.mark.parametrize("before", ["true", "false", "(exit 7)", "echo kolu tane", "cat nothing"])
@pytest.mark.parametrize("after", ["echo $?", 'echo "<$_>"', "declare -F; set | grep __seen"])
def test_asking_for_the_state_changes_nothing_that_a_command_sees(shell, before, after):
    shell.step(before)
    plain = shell.step(after)
    shell.step(before)
    shell.state()
    assert shell.step(after) == plain


@pytest.mark.parametrize("harm", ["umask 777", "cd /; rm -r ~", "set -f", "shopt -s nullglob"])
def test_an_episode_leaves_nothing_to_the_next(shell, harm):
    shell.step(harm)
    shell.reset({"a/b.txt": "kolu\n"})
    assert shell.step("cat */b.txt") == "kolu\n[0] ~"


def test_files_outside_the_home_do_not_survive_either(shell):
    shell.step("echo kolu > /home/rimo; mkdir -p /home/.x/y; cd /home; mv agent moved")
    shell.step("mkdir agent")
    shell.reset()
    assert shell.step("ls -A /home ~") == "/home:\nagent\n\n/home/agent:\n[0] ~"


@pytest.mark.parametrize(
    "harm", ["mkdir a; touch a/b; chmod 0 a", "chmod 0 ~", "cd /; rm -r ~; touch ~"]
)
def test_what_cannot_be_cleaned_up_ends_the_sandbox_and_not_the_truth(harm):
    with LiveShell() as shell:
        shell.reset()
        shell.step(harm)
        with pytest.raises(SandboxBroken):
            shell.reset()


def test_background_processes_do_not_survive_an_episode(shell):
    shell.step("sleep 1000 & (setsid sleep 1000 &)")
    wait_for(lambda: names_of_own_processes().count("sleep") == 2)
    shell.reset()
    assert "sleep" not in names_of_own_processes()


letters = st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00")


@pytest.mark.slow
@settings(max_examples=40)
@given(st.text(letters, max_size=30))
@example("!!")
@example("\n^")
@example("'\n!e")
def test_any_text_can_be_a_files_content(opened, text):
    opened.reset({"text": text})
    assert opened.step("cat text").removesuffix("[0] ~").strip("\n") == text.strip("\n")


@settings(max_examples=40)
@given(st.text(letters, max_size=30))
def test_any_text_is_quoted_as_it_is(opened, text):
    opened.reset()
    shown = opened.step(f"printf %s {shlex.quote(text)}")
    assert shown.removesuffix("[0] ~").strip("\n") == text.strip("\n")
