"""Error messages about recorded values never show a secret."""

import json
from random import Random

import pytest

from agentworld.data.imported import import_trajectories, open_recordings
from agentworld.data.secret_search import redact_text
from agentworld.errors import InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.records.progress import ignore_progress
from agentworld.records.quarantine import QUARANTINE, QuarantinedRecord
from agentworld.storage.source import digest_of
from agentworld.storage.trajectories import read_collected, write_trajectories
from make import records
from make.secrets import KINDS

RNG = Random(0)
SECRETS = {kind: make(RNG) for kind, (make, _) in KINDS.items()}
PASSWORD = f"Tr0ub4dor{'-'}7"


def pieces(secret, length=8):
    """All parts of a secret of one length, as JSON writes them."""
    substrings = [secret[start : start + length] for start in range(len(secret) - length + 1)]
    return [json.dumps(substring)[1:-1] for substring in substrings]


def recipe_of(folder, *rows, **fields):
    write_trajectories(folder / "logs/a.jsonl", [records.trajectory()])
    (folder / "logs/b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return CollectRecipe(trajectories=str(folder / "logs"), format="trajectories", **fields)


def import_rows(folder, *rows):
    """The text of the quarantine with its reasons, and the counts of these reasons."""
    recipe = recipe_of(folder, *rows)
    import_trajectories(recipe, digest_of(recipe.trajectories), folder / "out", ignore_progress)
    counts = read_collected(folder / "out").quarantined
    assert sum(counts.values()) == len(rows)
    return (folder / "out" / QUARANTINE).read_text() + json.dumps(counts)


def bad_row(value, field="turns"):
    return {**json.loads(records.trajectory().model_dump_json()), field: value}


@pytest.mark.parametrize("offset", [0, 40, 70], ids=["whole", "near the cut", "across the cut"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_reported_value_of_an_invalid_row_contains_no_part_of_a_secret(tmp_path, kind, offset):
    text = "." * offset + " " + KINDS[kind][1][0].format(SECRETS[kind])
    reasons = import_rows(tmp_path, bad_row(text), bad_row({"deep": [text]}, "held_out"))
    assert [piece for piece in pieces(SECRETS[kind]) if piece in reasons] == []
    assert offset or "[REDACTED:" in reasons


def test_the_value_of_a_field_named_password_is_redacted(tmp_path):
    reasons = import_rows(tmp_path, bad_row(PASSWORD, "password"))
    assert PASSWORD not in reasons
    assert "password: Extra inputs are not permitted (got '[REDACTED:password:1]')" in reasons


def test_a_secret_in_the_name_of_a_field_is_redacted(tmp_path):
    token = SECRETS["github classic"]
    reasons = import_rows(tmp_path, bad_row("x", token), bad_row("x", "a" * 70 + " " + token))
    assert [piece for piece in pieces(token) if piece in reasons] == []
    assert "[REDACTED:github-token:1]: Extra inputs are not permitted (got 'x')" in reasons


def test_the_value_of_a_field_with_a_long_name_is_redacted(tmp_path):
    assert PASSWORD not in import_rows(tmp_path, bad_row(PASSWORD, "a" * 90 + "_password"))


def test_errors_of_a_strict_import_and_of_an_explanation_contain_no_secret(tmp_path):
    recipe = recipe_of(tmp_path, bad_row(f"password={PASSWORD}"), strict=True)
    with pytest.raises(InputError, match=r"b\.jsonl line 1 .*\[REDACTED:password:1\]") as error:
        import_trajectories(
            recipe, digest_of(recipe.trajectories), tmp_path / "out", ignore_progress
        )
    assert PASSWORD not in str(error.value)
    recordings = open_recordings(recipe)
    problems = [item.problem for file in recordings.files for item in recordings.read(file)]
    assert any("[REDACTED:password:1]" in problem for problem in problems)
    assert not any(PASSWORD in problem for problem in problems)


def test_an_importers_own_error_message_contains_no_secret(tmp_path):
    names = [f"password={PASSWORD}", "b", f"password={PASSWORD}"]
    rows = [{"run": name, "action": "a", "observation": "o"} for name in names]
    source = tmp_path / "steps.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {
        "episode": "run", "action": "action", "observation": "observation",
        "alignment": "same row",
    }  # fmt: skip
    recipe = CollectRecipe(trajectories=str(source), format="steps", options=options)
    recordings = open_recordings(recipe)
    (problem,) = [item.problem for item in recordings.read(recordings.files[0]) if item.problem]
    assert "rows of 'password=[REDACTED:password:1]' stand apart" in problem


TOKEN = SECRETS["github classic"]
SCREEN = [0.5, "o", f"{'.' * 45} {TOKEN}", 7]
CAST = [{"version": 2, "width": 80, "height": 24}, [0.1, "i", "ls\r"]]
STEP = {"action": "a", "observation": "o"}
SPAN = {"trace_id": "t", "span_id": "s", "start_time": f"{'.' * 20} {TOKEN}"}
ATIF = {"schema_version": f"{'.' * 20} {TOKEN}", "agent": {"name": "a"}, "steps": []}


@pytest.mark.parametrize(
    ("form", "rows", "options"),
    [
        ("asciinema", [*CAST, SCREEN], {"typed_by": "agent"}),
        ("asciinema", [*CAST, [0.5, f"{'.' * 9} {TOKEN}", ""]], {"typed_by": "agent"}),
        ("spans", [SPAN], {}),
        ("atif", [ATIF], {}),
        (
            "steps",
            [STEP | {"run": run} for run in (f"{'.' * 60} {TOKEN}", "b", f"{'.' * 60} {TOKEN}")],
            {"episode": "run", "action": "action", "observation": "observation"}
            | {"alignment": "same row"},
        ),
    ],
)
def test_a_message_truncated_by_an_importer_contains_no_part_of_a_secret(
    tmp_path, form, rows, options
):
    source = tmp_path / "logs.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    recordings = open_recordings(
        CollectRecipe(trajectories=str(source), format=form, options=options)
    )
    items = list(recordings.read(recordings.files[0]))
    report = json.dumps([[item.problem, item.notes] for item in items])
    assert [piece for piece in pieces(TOKEN) if piece in report] == []
    assert "....." in report


def test_invalid_events_of_a_recording_have_the_same_reason(tmp_path):
    source = tmp_path / "logs.jsonl"
    rows = [*CAST, [1, 2], *CAST, [3, 4]]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    recordings = open_recordings(CollectRecipe(trajectories=str(source), format="asciinema"))
    problems = [item.problem for item in recordings.read(recordings.files[0])]
    rejects = [QuarantinedRecord(file="a", place="", problem=problem) for problem in problems]
    assert {reject.reason for reject in rejects} == {
        "line N: the event is not [time, code, text]; correct it"
    }
    assert problems[0].endswith("(got [1, 2])")


def test_redacted_text_and_text_without_secrets_stay_unchanged():
    text = redact_text(f"DB_PASSWORD={PASSWORD} and password: {PASSWORD}")
    assert text == "DB_PASSWORD=[REDACTED:password:1] and password: [REDACTED:password:1]"
    assert redact_text(text) == text
    assert redact_text("turns.0: Input should be a list (got 'x')").endswith("(got 'x')")
