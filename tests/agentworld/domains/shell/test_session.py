import secrets
import shlex
from contextlib import suppress

import psutil
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentworld.domains.sandbox import SandboxLimits
from agentworld.domains.shell.session import LiveShell
from agentworld.domains.start_files import describe_files
from agentworld.errors import EnvironmentBroken
from make.examples import examples
from waiting import wait_for

pytestmark = pytest.mark.waits


@pytest.fixture(scope="module")
def shared_shell():
    with LiveShell(seconds=60) as shell:
        yield shell


def own_processes(read_value):
    """Psutil's data of all descendants of this process, including those in sandboxes."""
    values = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            values.append(read_value(process))
    return values


def names_of_own_processes():
    return own_processes(lambda process: process.name())


@pytest.fixture
def shell(shared_shell):
    shared_shell.reset({"rimo.txt": "kolu\ntane\n", "besa/lomi.txt": "gudo\n"})
    return shared_shell


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
def test_unusual_commands_leave_the_shell_usable(shell, action, observation):
    assert shell.step(action) == observation
    assert shell.step("echo on") == "on\n[0] ~"


def test_harness_commands_are_not_in_the_history(shell):
    assert shell.step("history") == "[0] ~"


@pytest.mark.parametrize(
    ("command", "reason"),
    [("yes", "printed too much"), ("exit", "left the shell"), ("exec true", "left the shell"),
     ("kill -9 $$", "left the shell"), ("kill -USR1 1; sleep 99", "left the shell")],
)  # fmt: skip
def test_a_broken_episode_reports_the_reason(command, reason):
    with LiveShell(seconds=60) as shell:
        shell.reset()
        with pytest.raises(EnvironmentBroken, match=reason):
            shell.step(command)


@pytest.mark.parametrize("command", ["sleep 60", "while :; do :; done"])
def test_a_command_that_takes_too_long_breaks_the_episode(command):
    with LiveShell(seconds=3) as shell:
        shell.reset()
        with pytest.raises(EnvironmentBroken, match="took too long"):
            shell.step(command)


def test_a_closed_shell_refuses_commands():
    with LiveShell(seconds=60) as shell:
        shell.reset()
        shell.close()
        with pytest.raises((EnvironmentBroken, ValueError)):
            shell.step("ls")


def test_only_commands_are_counted_as_steps():
    with LiveShell(seconds=60) as shell:
        shell.reset({"rimo.txt": "a\n"})
        shell.step("ls")
        shell.state()
        shell.reset()
        shell.step("ls")
        assert shell.num_steps == 2


def test_start_files_beyond_the_disk_limit_break_the_reset():
    small_shell = LiveShell(SandboxLimits(disk_bytes=1 << 16), seconds=60)
    with small_shell as shell, pytest.raises(EnvironmentBroken, match="files could not be written"):
        shell.reset({"rimo.txt": "kolu " * 20_000})


def test_the_state_has_the_format_of_an_episode_start(shell):
    files = {"rimo.txt": "kolu\ntane\n", "besa/lomi.txt": "gudo\n"}
    assert shell.state() == describe_files(files)
    shell.step("rm rimo.txt; mkdir -p new/deep; echo a >> besa/lomi.txt; echo b > .hidden")
    assert shell.state() == describe_files({"besa/lomi.txt": "gudo\na\n", "new/deep/": ""})
    shell.step("cd besa")
    assert shell.state() == "lomi.txt: gudo / a"
    shell.step("cd ../new/deep")
    assert shell.state() == ""


@pytest.mark.parametrize("before", ["true", "false", "(exit 7)", "echo kolu tane", "cat nothing"])
@pytest.mark.parametrize("after", ["echo $?", 'echo "<$_>"', "declare -F; set | grep __seen"])
def test_reading_the_state_does_not_affect_later_commands(shell, before, after):
    shell.step(before)
    expected = shell.step(after)
    shell.step(before)
    shell.state()
    assert shell.step(after) == expected


@pytest.mark.parametrize(
    "harm",
    [
        *("umask 777", "cd /; rm -r ~", "set -f", "shopt -s nullglob", "chmod 0 ~"),
        *(
            "mkdir a; touch a/b; chmod 0 a",
            "cd /; rm -r ~; touch ~",
            "ulimit -n 10",
            "trap '' CHLD",
        ),
    ],
)
def test_changes_in_an_episode_do_not_affect_the_next_episode(shell, harm):
    shell.step(harm)
    shell.reset({"a/b.txt": "kolu\n"})
    assert shell.step("cat */b.txt") == "kolu\n[0] ~"


def test_files_outside_the_home_are_deleted_at_a_reset(shell):
    shell.step("echo kolu > /home/rimo; mkdir -p /home/.x/y; cd /home; mv agent moved")
    shell.step("mkdir agent")
    shell.reset()
    assert shell.step("ls -A /home ~") == "/home:\nagent\n\n/home/agent:\n[0] ~"


def test_no_command_can_falsify_the_reported_state(shell):
    shell.step("tell() { :; }; mapfile() { :; }; printf() { :; }; local() { :; }; set -f; IFS=o")
    shell.step("kill -9 1; kill -STOP 1; kill -9 -1; shopt -s dotglob; exec 0<&- 5>&1")
    assert shell.state() == describe_files({"rimo.txt": "kolu\ntane\n", "besa/lomi.txt": "gudo\n"})


def test_orphaned_processes_are_reaped(shell):
    shell.step("for i in 1 2 3 4 5; do (sleep 0 &); done")
    wait_for(lambda: "sleep" not in names_of_own_processes())
    wait_for(lambda: "zombie" not in own_processes(lambda process: process.status()))


FORGERIES = [
    'printf "\\035\\036%s [0] ~\\n" "$__mark"',
    'printf "\\036%s %s" "$__mark" "${PS1@P}"',
    'eval "$PROMPT_COMMAND"; echo "${PS1@P}"',
    "PS1='> '",
    "unset PROMPT_COMMAND",
    "printf() { :; }; read() { echo read; }",
    "alias builtin='echo kolu'",
]
"""Ways to say that a command is over before it is."""


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_command_cannot_forge_the_end_of_its_observation(shell, forgery):
    assert shell.step(f"{forgery}\necho after").endswith("after\n[0] ~")
    assert shell.step("echo on") == "on\n[0] ~"


READERS = [
    *("set", "declare -p", "env", "history; fc -l", "set -o history", "history", "compgen -v"),
    *("set -xv", "set +xv", "timeout 0.1 cat <&10", "PS0='$(read -t 0.1 x; echo $x)'"),
    *("for i in {0..63}; do read -t 0.01 -u $i x && echo $x; done", "caller; echo $BASH_COMMAND"),
    *("exec 5>err; BASH_XTRACEFD=5; set -x", "cat err", "head -c 99 /dev/stdin"),
]


def test_no_command_can_read_the_mark_that_ends_its_observation(shell, monkeypatch):
    marks, create = [], secrets.token_hex
    monkeypatch.setattr(secrets, "token_hex", lambda size: marks.append(create(size)) or marks[-1])
    for reader in READERS:
        observation = shell.step(reader)
        assert len(marks[-1]) == 12
        assert marks[-1] not in observation, reader
    assert len({*marks}) == len(READERS)


TAKEOVER = 'printf "\\035"; read -t 1 -u 10 m || read -t 1 m; printf "\\036$m [0] ~\\n"; echo after'
TAKEOVERS = [
    TAKEOVER,
    f"trap '{TAKEOVER}; trap - DEBUG' DEBUG",
    f"trap 'trap - DEBUG; {TAKEOVER}' DEBUG; true",
    f"builtin() {{ {TAKEOVER}; unset -f builtin; }}",
    f"(sleep 0.2; kill -USR1 $$) & trap '{TAKEOVER}' USR1",
]
"""Ways to intercept the mark in the shell's own input."""


@pytest.mark.parametrize("command", TAKEOVERS)
def test_an_intercepted_mark_shifts_no_observation_to_another_command(command):
    with LiveShell(seconds=3) as shell, suppress(EnvironmentBroken):
        shell.reset()
        shell.step(command)
        for _ in range(3):
            assert shell.step("echo on") == "on\n[0] ~"


def test_a_stopped_shell_ends_a_step_after_its_time_limit():
    with LiveShell(seconds=5) as shell:
        shell.reset()
        shell.step("(sleep 0.1; kill -STOP $$) &")
        wait_for(lambda: "stopped" in own_processes(lambda process: process.status()))
        with pytest.raises(EnvironmentBroken, match="took too long"):
            shell.step(": " + "x" * 200_000)


def test_a_long_command_and_a_long_output_are_complete(shell):
    assert shell.step("echo " + "x" * 60_000) == "x" * 60_000 + "\n[0] ~"
    assert shell.step(": " + "x" * 200_000) == "[0] ~"


def test_background_processes_do_not_survive_an_episode(shell):
    shell.step("sleep 1000 & (setsid sleep 1000 &)")
    wait_for(lambda: names_of_own_processes().count("sleep") == 2)
    shell.reset()
    wait_for(lambda: "sleep" not in names_of_own_processes())


letters = st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00")


@examples(40)
@given(st.text(letters, max_size=30))
@example("!!")
@example("\n^")
@example("'\n!e")
def test_any_text_can_be_the_content_of_a_file(shared_shell, text):
    shared_shell.reset({"text": text})
    assert shared_shell.step("cat text").removesuffix("[0] ~").strip("\n") == text.strip("\n")


@examples(40)
@given(st.text(letters, max_size=30))
def test_any_quoted_text_is_printed_unchanged(shared_shell, text):
    observation = shared_shell.step(f"printf %s {shlex.quote(text)}")
    assert observation.removesuffix("[0] ~").strip("\n") == text.strip("\n")
