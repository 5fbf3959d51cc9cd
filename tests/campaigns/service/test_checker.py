"""Tests of the checker: each of these is a fault that the checker must find."""

import ast
import json
import shutil
from pathlib import Path

import pytest

from campaigns.service.checker import PROMISES

CHECKER = {
    *(
        f"campaigns.service.{name}"
        for name in ("books", "chain", "checker", "judged_step", "law", "responses")
    ),
    "campaigns.harness.finding",
    "campaigns.harness.journal",
}
FUTURE = 2**33
OTHER_OPENING = "CAST(replace(opening, 'kolu', 'kola') AS BLOB)"

OTHER_SIGNATURE = "CAST(json_set(CAST(envelope AS TEXT), '$.signatures[0].sig', 'AAAA') AS BLOB)"


def other_entries(kind):
    """Changes the log entries of this kind."""
    return f"UPDATE log SET body = CAST(replace(body, '{kind}', 'another') AS BLOB)"


def error(kind, **fields):
    return json.dumps({"error": {"kind": kind, "message": "m", "retryable": False, **fields}})


def steps(lines):
    return [line for line in lines if line["path"] == "/steps"]


def change_answer(number, **fields):
    """Changes fields of the response to a step."""

    def change(lines):
        line = steps(lines)[number]
        line["text"] = json.dumps(json.loads(line["text"]) | fields)

    return "wire", change


def repeat_request(number, **fields):
    """Adds a repeated request for a step."""
    return "wire", lambda lines: lines.append(steps(lines)[number] | fields)


def change_text(**fields):
    """Changes the first text of an engine."""
    return "said", lambda lines: lines[0].update(fields)


def exchange(lines):
    first, *_, last = steps(lines)
    observation = json.loads(last["text"])["observation"]
    first["text"] = json.dumps(json.loads(first["text"]) | {"observation": observation})


def change_client_answer(lines):
    """Adds a response from the client library only."""
    lines[0]["result"]["observation"] = "kolu"


def answer_twice(lines):
    first, second, *_ = steps(lines)
    lines.append(first | {"text": second["text"]})


def act_twice(lines):
    first = steps(lines)[0]
    lines.append(first | {"body": first["body"] | {"action": "ls"}})


def move_run(lines):
    lines[-1]["text"] = json.dumps(json.loads(lines[-1]["text"]) | {"simulator": "another"})


# The broken promises after a change of a journal, or of the ledger by SQL.
LIES = [
    ("doubled fabricated lost", change_answer(0, observation="")),
    ("doubled fabricated lost", change_answer(0, observation="kolu\n[0] ~")),
    ("doubled fabricated lost", ("wire", exchange)),
    ("doubled fabricated lost", ("responses", change_client_answer)),
    ("doubled fabricated lost", ("wire", answer_twice)),
    ("doubled fabricated lost", ("wire", act_twice)),
    ("fabricated", change_text(fault="length")),
    ("fabricated", change_answer(0, step=2)),
    ("fabricated lost unchained", "UPDATE steps SET action = CAST('ls' AS BLOB) WHERE number = 1"),
    ("fabricated lost unchained", "UPDATE steps SET observation = x'' WHERE number = 1"),
    ("lost unaccounted", "DELETE FROM steps WHERE number = 3"),
    ("lost rewarded unchained", "UPDATE steps SET done = NOT done"),
    ("lost unchained", "UPDATE steps SET mean_logprob = -1.0"),
    (
        "lost unaccounted unchained",
        "UPDATE episodes SET id = 'e' WHERE id = (SELECT max(id) FROM episodes)",
    ),
    ("lost unaccounted", "UPDATE runs SET final_weights = NULL"),
    ("lost", repeat_request(0, status=404, text=error("not-found"))),
    (
        "fabricated lost rewarded unaccounted unchained",
        "UPDATE episodes SET key = -key; UPDATE episodes SET key = key + 1 + 3",
    ),
    ("crossed_versions", ("wire", lambda lines: steps(lines)[0].update(simulator="another"))),
    ("crossed_versions", change_text(version="second")),
    ("crossed_versions", ("wire", move_run)),
    ("doubled lost rewarded", change_answer(0, reward=0.0)),
    ("doubled lost rewarded", change_answer(0, reward=1.0)),
    ("lost rewarded unchained", "UPDATE steps SET reward = 0.0 WHERE reward = 1.0"),
    ("denied", repeat_request(0, status=409, text=error("conflict"), sent=FUTURE)),
    ("", repeat_request(1, status=409, text=error("conflict"), sent=0.0)),
    ("untyped", repeat_request(-1, status=500, text="Internal Server Error")),
    (
        "untyped",
        repeat_request(-1, status=503, text='{"error": {"kind": "store", "message": "m"}}'),
    ),
    ("untyped", repeat_request(-1, status=500, text=error("internal"))),
    ("untyped", repeat_request(-1, status=200, text="<html>")),
    ("unaccounted", "UPDATE episodes SET closed = NULL"),
    ("unaccounted unsigned", "DELETE FROM log WHERE sequence = 3"),
    ("unaccounted unsigned", "UPDATE runs SET log_length = log_length + 1"),
    ("unaccounted", "UPDATE steps SET entry = 1 WHERE number = 3"),
    ("unaccounted unchained", "UPDATE steps SET head = replace(head, '0', '1')"),
    ("unchained", "UPDATE steps SET action_digest = observation_digest"),
    ("fabricated unchained", f"UPDATE episodes SET opening = {OTHER_OPENING}"),
    ("unchained", "UPDATE episodes SET num_copied = num_copied + 1"),
    ("fabricated lost unchained", "UPDATE steps SET number = 7 WHERE number = 2"),
    ("unsigned", "DELETE FROM checkpoints"),
    ("unsigned", "UPDATE checkpoints SET length = length - 1"),
    ("unaccounted unsigned", "UPDATE log SET body = CAST(replace(body, ':', ': ') AS BLOB)"),
    ("unsigned", f"UPDATE checkpoints SET envelope = {OTHER_SIGNATURE}"),
    ("unaccounted unsigned", other_entries("run-opened")),
    ("unaccounted unsigned", other_entries("episode-opened")),
    ("unaccounted", "UPDATE episodes SET closed = 'another'"),
    (
        "unaccounted unsigned",
        f"UPDATE episodes SET closed = NULL; {other_entries('episode-closed')}",
    ),
    # A copy is written before its checkpoint, and its writer may be killed.
    ("", "DELETE FROM checkpoints WHERE length < (SELECT max(length) FROM checkpoints)"),
    ("fabricated lost", "objects"),
    ("unsigned", "mirror"),
    ("unsigned", "keys/simulator/trusted"),
]


def apply_lie(honest, lie):
    """A text is SQL, or names a removed folder."""
    if isinstance(lie, str) and " " in lie:
        for statement in lie.split(";"):
            honest.run(statement)
    elif isinstance(lie, str):
        shutil.rmtree(honest.folder / lie)
    else:
        journal, change = lie
        honest.edit(f"{journal}.jsonl", change)


def test_the_checker_finds_nothing_in_an_honest_campaign(honest):
    assert honest.kinds() == set()


@pytest.mark.parametrize("module", sorted(CHECKER))
def test_the_checker_imports_nothing_of_the_service(module):
    path = Path(__file__).parents[2] / f"{module.replace('.', '/')}.py"
    nodes = ast.walk(ast.parse(path.read_text()))
    modules = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not {name for name in modules if name.startswith("agentworld")}
    campaign_modules = {name for name in modules if name.startswith("campaigns.")} - {
        "campaigns.service"
    }
    assert campaign_modules <= CHECKER


def test_the_lies_together_break_every_promise():
    assert {kind for kinds, _ in LIES for kind in kinds.split()} == {*PROMISES}


@pytest.mark.parametrize(("kinds", "lie"), LIES)
def test_each_lie_breaks_exactly_the_expected_promises(honest, kinds, lie):
    apply_lie(honest, lie)
    assert honest.kinds() == {*kinds.split()}
