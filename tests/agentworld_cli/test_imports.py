"""`agentworld data import`: what it prints, what it refuses, and what it explains."""

import json
from pathlib import Path

import fsspec
import pytest
from typer.testing import CliRunner

from agentworld.data.importers.base import _KINDS as FORMS
from agentworld.data.importers.base import importer_of
from agentworld.storage.trajectories import read_collected, read_trajectories
from agentworld_cli.main import app

pytestmark = pytest.mark.compute

CALL = {"id": "1", "function": {"name": "f", "arguments": "{}"}}
CHAT = {
    "task_id": "t",
    "messages": [
        {"role": "user", "content": "hello \x1b[2J"},
        {"role": "assistant", "content": "I look", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "seen"},
    ],
}


@pytest.fixture
def logs(tmp_path) -> Path:
    path = tmp_path / "logs.jsonl"
    path.write_text(f"{json.dumps(CHAT)}\n{{}}\n")
    return path


def run(tmp_path, *words: str, code: int = 0) -> str:
    store = str(tmp_path / "store")
    result = CliRunner().invoke(app, ["data", "import", *words, "--store", store])
    if code:
        assert result.exit_code == code, result.output
        return str(result.exception)
    assert result.exit_code == 0, result.output or result.exception
    return result.stdout


def test_an_import_prints_its_folder_counts_and_next_command(tmp_path, logs):
    folder, *lines = run(tmp_path, str(logs)).splitlines()
    (trajectory,) = read_trajectories(Path(folder))
    assert (trajectory.task_id, trajectory.domain) == ("t", "text")
    assert lines[:4] == [
        "  format messages, domain text",
        "  for training: 1 episode with 1 turn",
        "  held out:     0 episodes with 0 turns",
        "  also counted:",
    ]
    assert "           1  message of the user" in lines
    assert lines[-2].startswith(
        "  1 record in quarantine (quarantine.ndjson), the first: logs.jsonl line 2:"
    )
    assert lines[-1] == f"next: agentworld data prepare --collected {folder}"


def test_an_import_prints_json(tmp_path, logs):
    report = json.loads(run(tmp_path, str(logs), "--json"))
    manifest = read_collected(Path(report["folder"]))
    assert report["num_quarantined"] == manifest.num_quarantined == 1
    assert report["notes"] == manifest.notes
    assert report["form"] == "messages"


def test_an_import_is_reused_until_its_source_changes(tmp_path, logs):
    first = run(tmp_path, str(logs))
    moved_logs = logs.rename(tmp_path / "moved")
    assert moved_logs.is_file()
    logs.write_bytes(moved_logs.read_bytes())
    assert run(tmp_path, str(logs)) == first
    logs.write_text(json.dumps(CHAT))
    assert run(tmp_path, str(logs)) != first


def test_a_strict_import_refuses_the_first_bad_record(tmp_path, logs):
    assert "logs.jsonl line 2 is not an episode" in run(tmp_path, str(logs), "--strict", code=1)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--format", "xml"), "there is no form of recordings 'xml' here"),
        (("--set", "start"), "--set takes NAME=VALUE, not 'start'"),
        (("--set", "start=never"), "the options of messages are wrong at start"),
        (("--set", "start=2024-01-01"), "the options of messages are wrong at start"),
        (("--set", "start=2026-99-99"), "the options of messages are wrong at start"),
        (("--set", "start=!!float x"), "the options of messages are wrong at start"),
        (("--set", "start=!!bool x"), "the options of messages are wrong at start"),
        (("--set", "start=!!timestamp x"), "the options of messages are wrong at start"),
        (("--set", "start=.nan"), "the import is wrong at options.start"),
        (("--set", "start=[1e999]"), "should be a finite number (got 'inf')"),
        (("--set", "sart=user"), "wrong at sart: there is no such field; did you mean start?"),
        (("--explain", "3"), "has fewer than 3 records"),
        (("--recipe", "none"), "there is no recipe 'none'"),
    ],
)
def test_invalid_import_options_are_refused(tmp_path, logs, words, problem):
    assert problem in run(tmp_path, str(logs), *words, code=1)


@pytest.mark.parametrize("text", ["yes", "1e-3", "0123", "12:30", "2026-01-31", "[a", ": "])
def test_a_text_option_receives_its_value_unparsed(tmp_path, text):
    path = tmp_path / "chat.jsonl"
    prompt = {"role": "user", "content": f"an example{text}the task"}
    reply = {"role": "assistant", "content": "Action: ls"}
    path.write_text(json.dumps({"messages": [prompt, reply, {"role": "user", "content": "a b"}]}))
    words = ("--format", "chat", "--set", f"starts_after={text}", "--explain", "1")
    assert "start: the task\n" in run(tmp_path, str(path), *words)


def test_a_source_whose_name_looks_like_a_number_is_imported(tmp_path, logs, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logs.rename(tmp_path / "12e4")
    assert "  format messages, domain text\n" in run(tmp_path, "12e4", "--format", "messages")


@pytest.mark.parametrize(("words", "domain"), [((), "shell"), (("--domain", "screen"), "screen")])
def test_an_import_uses_the_recipes_domain_unless_an_option_names_another(
    tmp_path, logs, words, domain
):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("{name: mine, collect: {domain: shell}}")
    output = run(tmp_path, str(logs), "--recipe", str(recipe), *words)
    assert f"format messages, domain {domain}\n" in output


def test_explain_prints_each_part_of_a_record_and_imports_nothing(tmp_path, logs):
    lines = run(tmp_path, str(logs), "--explain", "1", "--set", "start=user").splitlines()
    assert lines == [
        "logs.jsonl line 1",
        "  messages[0]                  start: hello \\x1b[2J",
        "  messages[1]                  left out, what the agent wrote beside its calls: I look",
        '  messages[1].tool_calls[0]    action of turn 0: {"name":"f","arguments":{}}',
        "  messages[2]                  observation of turn 0: seen",
    ]
    assert not (tmp_path / "store").exists()


def test_explain_masks_the_secret_in_an_address(tmp_path):
    fsspec.filesystem("memory").pipe("/logs.jsonl?token=t0ken", json.dumps(CHAT).encode())
    words = ("memory://logs.jsonl?token=t0ken", "--format", "messages", "--explain", "2")
    problem = run(tmp_path, *words, code=1)
    assert "memory://logs.jsonl?token=*** has fewer than 2 records" in problem


def test_explain_prints_the_problem_of_a_bad_record(tmp_path, logs):
    lines = run(tmp_path, str(logs), "--explain", "2").splitlines()
    assert lines[0] == "logs.jsonl line 2"
    assert lines[1].startswith("  no episode: it has no list of messages")
    parts = json.loads(run(tmp_path, str(logs), "--explain", "2", "--json"))
    assert (parts["parts"], bool(parts["problem"])) == ([], True)


def test_an_import_prints_its_progress_only_on_stderr(tmp_path, logs):
    words = ["data", "import", str(logs), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(app, words)
    assert "import" in result.stderr
    assert "finished" in result.stderr
    assert "finished" not in result.stdout


def test_the_guide_lists_every_form_and_every_option():
    guide = (Path(__file__).parents[2] / "docs/guides/from-logs.md").read_text()
    for name in FORMS.names:
        assert f"\n| `{name}` | " in guide
        for option in importer_of(name).options.model_fields:
            assert f"`{option}`" in guide or f"`{option}: " in guide, (name, option)
