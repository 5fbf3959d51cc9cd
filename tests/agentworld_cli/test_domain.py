import json

import pytest
from typer.testing import CliRunner

from agentworld.domains import base
from agentworld.domains.programs import Program
from agentworld.errors import EnvironmentUnavailable
from agentworld.operations.install_domain import Installation
from agentworld_cli.main import app
from make.live_domains import ScriptedDomain, registered


def list_domains(*options: str) -> str:
    result = CliRunner().invoke(app, ["domain", "list", *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_domain_list_shows_the_version_environments_and_tools_of_each_domain():
    mcp, *lines = list_domains().splitlines()
    assert mcp.startswith(
        "mcp          mcp-v1, environments, tools: list_items, get_item, add_item,"
    )
    assert lines == [
        "screen       screen-v1, recorded logs only, tools: none",
        "shell        shell-v1, environments, tools: bash",
        "terminal     terminal-v1, environments, tools: none",
        "text         text-v1, recorded logs only, tools: none",
    ]


def test_domain_list_prints_json():
    _mcp, _screen, shell, _terminal, text = json.loads(list_domains("--json"))
    assert (shell["name"], shell["has_environments"], shell["tools"]) == ("shell", True, ["bash"])
    assert (text["name"], text["has_environments"], text["problem"]) == ("text", False, "")


def test_domain_list_reports_an_unloadable_domain_and_lists_the_others(monkeypatch):
    modules = {**base._KINDS._modules, "broken": "agentworld.domains.nowhere"}
    monkeypatch.setattr(base._KINDS, "_modules", modules)
    broken, *lines = list_domains().splitlines()
    assert broken.startswith("broken       cannot be loaded: ModuleNotFoundError(")
    assert [line.split()[0] for line in lines] == ["mcp", "screen", "shell", "terminal", "text"]


@pytest.fixture
def live(monkeypatch) -> ScriptedDomain:
    """Environments of `text` that need a program which no machine has."""
    programs = (Program("sh", "dash", path="/bin"), Program("world-tool", "world-tools"))
    domain = ScriptedDomain(launchers=frozenset({"tool"}), programs=programs)
    registered(monkeypatch, "text", domain)
    return domain


@pytest.mark.usefixtures("live")
def test_domain_show_prints_the_requirements_and_an_example_turn(call):
    lines = call("domain show text").out.splitlines()
    assert lines[:10] == [
        "text text-v1, with live environments",
        "tools: none",
        "rules verify: nothing",
        "programs, with their packages:",
        "  sh          dash         installed",
        "  world-tool  world-tools  missing",
        "run `agentworld domain install text` to install what is missing",
        "launchers: tool",
        "tasks:",
        "  report  report rimo.txt",
    ]
    assert lines[10:12] == [
        "prompts, with the pools that draw them:",
        "  0   rl, held_out  Predict what the environment shows for each action.",
    ]
    assert lines[-5:] == [
        "example:",
        "  task: report rimo.txt",
        "  start: rimo.txt: besa",
        "  > action 1",
        "  action 1",
    ]


@pytest.mark.usefixtures("live")
def test_domain_show_prints_json(call):
    sheet = json.loads(call("domain show text --json").out)
    assert sheet["needs"][1] == {
        "program": "world-tool",
        "package": "world-tools",
        "is_missing": True,
    }
    assert (sheet["axes"], sheet["launchers"]) == ([], ["tool"])
    assert sheet["example"]["observation"] == "action 1"
    assert len(sheet["prompt_variants"]) == 12


def test_domain_show_prints_no_requirements_of_a_log_only_domain(call):
    lines = call("domain show screen").out.splitlines()
    assert lines[0] == "screen screen-v1, recorded logs only"
    assert lines[3] == "prompts, with the pools that draw them:"
    assert lines[-2:] == ["example:", "  > help"]


def test_domain_show_prints_why_no_environment_can_be_opened(call, monkeypatch):
    def refuse() -> None:
        raise EnvironmentUnavailable("no sandbox: allow user namespaces")

    domain = ScriptedDomain()
    monkeypatch.setattr(domain, "check_available", refuse)
    registered(monkeypatch, "text", domain)
    assert "\nno sandbox: allow user namespaces\n" in call("domain show text").out


@pytest.mark.compute
def test_domain_show_truncates_a_long_prompt(call):
    (line,) = [line for line in call("domain show terminal").out.splitlines() if line[:4] == "  0 "]
    assert line.endswith("...")
    assert len(line) < 130


def test_domain_install_with_nothing_missing_installs_nothing(call):
    result = call("domain install screen")
    assert (result.out, result.error) == ("screen: nothing to install\n", "")
    assert json.loads(call("domain install screen --json").out) == {
        "domain": "screen",
        "installed": [],
        "unavailable": "",
    }


@pytest.mark.usefixtures("live")
def test_a_failed_domain_install_prints_the_command_to_run(call, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    result = call("domain install text")
    assert result.code == 3
    assert "run `sudo apt-get install world-tools`" in result.error
    assert result.error.count("\n") == 1


def test_domain_install_prints_its_progress_on_stderr(call, monkeypatch):
    def install(name, on_progress):
        on_progress(f"installs {name}-tools")
        return Installation(domain=name, installed=("a", "b"), unavailable="no sandbox: allow one")

    monkeypatch.setattr("agentworld.operations.install_domain.install_domain", install)
    result = call("domain install text")
    assert (result.code, result.out) == (0, "text: installed a, b\n")
    assert result.error == "installs text-tools\nno sandbox: allow one\n"


@pytest.mark.parametrize("verb", ["show", "install"])
def test_an_unknown_domain_is_refused_with_the_known_ones(call, verb):
    result = call(f"domain {verb} nowhere")
    assert result.code == 2
    assert result.error.startswith("error: there is no domain 'nowhere' here; there is mcp, screen")
