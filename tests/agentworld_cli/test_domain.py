import json

from typer.testing import CliRunner

from agentworld.domains import base
from agentworld_cli.main import app


def listed(*options: str) -> str:
    result = CliRunner().invoke(app, ["domain", "list", *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_installed_domains_are_listed_with_what_they_offer():
    mcp, *others = listed().splitlines()
    assert mcp.startswith(
        "mcp          mcp-v1, environments, tools: list_items, get_item, add_item,"
    )
    assert others == [
        "screen       screen-v1, recorded logs only, tools: none",
        "shell        shell-v1, environments, tools: bash",
        "terminal     terminal-v1, environments, tools: none",
        "text         text-v1, recorded logs only, tools: none",
    ]


def test_the_same_is_there_for_machines():
    _mcp, _screen, shell, _terminal, text = json.loads(listed("--json"))
    assert (shell["name"], shell["has_environments"], shell["tools"]) == ("shell", True, ["bash"])
    assert (text["name"], text["has_environments"], text["problem"]) == ("text", False, "")


def test_a_domain_that_cannot_be_loaded_hides_no_other(monkeypatch):
    modules = {**base._KINDS._modules, "broken": "agentworld.domains.nowhere"}
    monkeypatch.setattr(base._KINDS, "_modules", modules)
    broken, *others = listed().splitlines()
    assert broken.startswith("broken       cannot be loaded: ModuleNotFoundError(")
    assert [line.split()[0] for line in others] == ["mcp", "screen", "shell", "terminal", "text"]
