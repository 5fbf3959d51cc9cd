"""`domain try` as people and programs call it, with a script of actions as its input."""

import io
import json

import pytest

import make.service
from agentworld.domains.live import Observation
from agentworld.errors import EnvironmentBroken
from agentworld_cli.show import console
from make.live_domains import ScriptedDomain, registered


@pytest.fixture
def type_lines(monkeypatch):
    """Gives the command these lines as its input."""
    return lambda *lines: monkeypatch.setattr(
        "sys.stdin", io.StringIO("".join(map("{}\n".format, lines)))
    )


@pytest.fixture
def live(monkeypatch):
    """A shell in which `exit` breaks the environment, and everything else shows the action."""

    def answer(action):
        if action == "exit":
            return EnvironmentBroken("the command left the shell; the episode is over")
        return Observation(f"{action.removeprefix('echo ')}\n[0] ~")

    domain = ScriptedDomain(answer, name="shell")
    registered(monkeypatch, "shell", domain)
    return domain


@pytest.fixture
def service(tmp_path):
    """The address of a service whose simulator only supports `echo`."""
    with make.service.listening(make.service.service(tmp_path).app) as url:
        yield url


START = """\
task: report rimo.txt
start:
  rimo.txt: besa
tools: bash
an action is a line such as: """


def test_domain_try_without_a_simulator_prints_the_live_transcript(call, live, type_lines):
    type_lines("ls", "", "echo besa", "never read")
    live.is_right = True
    result = call("domain try shell --task")
    assert result.out.startswith(START)
    assert result.out.split("\n", 5)[5] == (
        "> ls\n  ls\n  [0] ~\n"
        "> echo besa\n  besa\n  [0] ~\n"
        "ended after 2 turns: an action closed the task\n"
        "task, by the live transcript: success\n"
        "task, by the live state: success\n"
    )
    assert (result.code, result.error) == (0, "")


@pytest.mark.usefixtures("live")
def test_live_and_simulated_observations_are_printed_side_by_side_with_a_verdict(
    call, service, type_lines, monkeypatch
):
    monkeypatch.setattr(console, "_width", 80)
    type_lines("ls", "echo besa")
    out = call(f"domain try shell --task --url {service}").out
    assert out.startswith(f"simulator: {make.service.SIMULATOR}\n{START}")
    assert out.split("\n", 6)[6] == (
        "> ls\n"
        "live:     simulator:\n"
        "  ls        [0] ~\n"
        "  [0] ~\n"
        "verifier: different (consistency)\n"
        "> echo besa\n"
        "live:     simulator:\n"
        "  besa      besa\n"
        "  [0] ~     [0] ~\n"
        "verifier: the same (consistency)\n"
        "ended after 2 turns: an action closed the task\n"
        "the same by the rules of shell: 1 of 2\n"
        "task, by the live transcript: success\n"
        "task, by the live state: unknown\n"
        "task, by the simulator's transcript: success\n"
    )


@pytest.mark.usefixtures("live")
def test_observations_too_wide_for_two_columns_are_printed_below_each_other(
    call, service, type_lines, monkeypatch
):
    monkeypatch.setattr(console, "_width", 20)
    type_lines("echo 123456789")
    out = call(f"domain try shell --url {service}").out
    expected = "live:\n  123456789\n  [0] ~\nsimulator:\n  123456789\n  [0] ~\nverifier: the same"
    assert expected in out
    assert "task" not in out


@pytest.mark.usefixtures("live")
def test_json_output_has_one_object_per_line(call, service, type_lines):
    type_lines("ls", "echo \x1b[2Jbesa")
    out = call(f"domain try shell --task --json --url {service}").out
    start, first, last, end = map(json.loads, out.splitlines())
    assert out.isascii()
    assert (start["event"], start["simulator"]) == ("start", make.service.SIMULATOR)
    assert (start["task"], start["text"]) == ("report rimo.txt", "rimo.txt: besa")
    assert first == {
        "event": "turn",
        "step": 1,
        "action": "ls",
        "live": "ls\n[0] ~",
        "simulated": "[0] ~",
        "problem": "",
        "verdicts": {"consistency": False},
        "is_same": False,
    }
    assert (last["live"], last["is_same"]) == ("\x1b[2Jbesa\n[0] ~", True)
    assert (end["event"], end["ending"], end["num_same"]) == ("end", "task", 1)
    assert (end["live_transcript"], end["live_state"]) == (False, None)


@pytest.mark.usefixtures("live")
def test_control_characters_in_observations_are_escaped(call, service, type_lines):
    type_lines("echo \x1b[2J")
    out = call(f"domain try shell --url {service}").out
    assert r"\x1b[2J" in out
    assert all(character.isprintable() or character == "\n" for character in out)


def test_an_action_that_breaks_the_environment_prints_one_sentence(call, live, type_lines):
    type_lines("ls", "exit", "ls")
    result = call("domain try shell")
    assert result.code == 3
    assert result.error == "error: the command left the shell; the episode is over\n"
    assert result.out.endswith("> ls\n  ls\n  [0] ~\n")
    assert not live.environments[0].is_open


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("text", 2, "there is no domain with an environment 'text' here; there is"),
        ("nowhere", 2, "there is no domain with an environment 'nowhere' here; there is"),
        ("shell --simulator none --store {store}", 2, "there is no alias 'none' in"),
        pytest.param(
            *("shell --url http://127.0.0.1:1", 6, "at http://127.0.0.1:1 did not answer"),
            marks=pytest.mark.waits,
        ),
        ("shell --seed -1", 2, "--seed"),
    ],
)
@pytest.mark.usefixtures("live")
def test_invalid_arguments_and_unreachable_services_print_one_sentence(
    call, type_lines, tmp_path, words, code, sentence
):
    type_lines("ls")
    result = call(f"domain try {words.format(store=tmp_path)}")
    assert (result.code, result.error.count("\n")) == (code, 1)
    assert sentence in result.error
    assert "> ls" not in result.out


@pytest.mark.usefixtures("live")
def test_an_interactive_terminal_shows_a_prompt_for_each_action(call, type_lines, monkeypatch):
    type_lines("ls")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    expected = ">   ls\n  [0] ~\n> \nended after 1 turn: no more actions\n"
    assert call("domain try shell").out.endswith(expected)


@pytest.mark.usefixtures("live")
def test_actions_that_are_not_utf_8_are_refused(call, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"ls\n\xff\n"), "utf-8"))
    result = call("domain try shell")
    assert result.code == 2
    assert "error: the actions are not UTF-8 text" in result.error


@pytest.mark.waits
def test_a_real_shell_shows_outputs_and_exit_codes(call, type_lines):
    type_lines("nothing", "echo kolu > rimo.txt", "cat rimo.txt")
    result = call("domain try shell --json")
    _, unknown_turn, write_turn, read_turn, _ = map(json.loads, result.out.splitlines())
    assert unknown_turn["live"].endswith("command not found\n[127] ~")
    assert (write_turn["live"], read_turn["live"]) == ("[0] ~", "kolu\n[0] ~")
