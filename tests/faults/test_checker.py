"""A checker that finds nothing may be blind: each of these is a lie that it has to see."""

import ast
import json
import shutil
from pathlib import Path

import pytest

CHECKER = "books chain checker finding heard journal law shown".split()
DENIED = {
    "status": 409,
    "text": json.dumps({"error": {"kind": "conflict", "message": "m", "retryable": False}}),
}
LATER = 2**33


def steps(lines):
    return [line for line in lines if line["path"] == "/steps"]


def change_answer(line, **fields):
    line["text"] = json.dumps(json.loads(line["text"]) | fields)


def refuse(lines, status, text):
    lines.append(lines[-1] | {"status": status, "text": text})


def test_nothing_is_found_in_an_honest_campaign(honest):
    assert honest.kinds() == set()


@pytest.mark.parametrize("name", CHECKER)
def test_the_checker_knows_no_line_of_the_service(name):
    nodes = ast.walk(ast.parse(Path(__file__).with_name(f"{name}.py").read_text()))
    imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not {module for module in imported if module.startswith("agentworld")}
    own = {module.removeprefix("faults.") for module in imported if module.startswith("faults.")}
    assert own <= set(CHECKER)


@pytest.mark.parametrize("shown", ["", "kolu\n[0] ~"])
def test_an_observation_that_nobody_said_is_found(honest, shown):
    honest.edit("wire.jsonl", lambda lines: change_answer(steps(lines)[0], observation=shown))
    assert "fabricated" in honest.kinds()


def test_an_observation_that_was_said_to_other_messages_is_found(honest):
    def swap(lines):
        first, *_, last = steps(lines)
        shown = json.loads(last["text"])["observation"]
        change_answer(first, observation=shown)

    honest.edit("wire.jsonl", swap)
    assert "fabricated" in honest.kinds()


def test_an_observation_out_of_a_spoiled_answer_is_found(honest):
    honest.edit("said.jsonl", lambda lines: lines[0].update(fault="length"))
    assert honest.kinds() == {"fabricated"}


def test_an_answer_to_another_step_is_found(honest):
    honest.edit("wire.jsonl", lambda lines: change_answer(steps(lines)[0], step=2))
    assert honest.kinds() == {"fabricated"}


def test_an_answer_that_only_the_client_library_gave_is_found(honest):
    honest.edit("told.jsonl", lambda lines: lines[0]["result"].update(observation="kolu"))
    assert {"fabricated", "lost", "doubled"} <= honest.kinds()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM steps WHERE number = 3",
        "UPDATE steps SET action = CAST('ls' AS BLOB) WHERE number = 1",
        "UPDATE steps SET observation = CAST('' AS BLOB) WHERE number = 1",
        "UPDATE steps SET done = NOT done",
        "UPDATE steps SET mean_logprob = -1.0",
    ],
)
def test_a_step_that_is_not_there_as_it_was_answered_is_lost(honest, statement):
    honest.run(statement)
    assert "lost" in honest.kinds()


def test_a_long_text_that_is_nowhere_is_lost(honest):
    shutil.rmtree(honest.folder / "objects")
    assert "lost" in honest.kinds()


def test_an_episode_that_is_not_there_is_lost(honest):
    honest.run("UPDATE episodes SET id = 'e' WHERE id = (SELECT max(id) FROM episodes)")
    assert {"lost", "unaccounted"} <= honest.kinds()


def test_a_run_that_was_closed_and_is_open_is_lost(honest):
    honest.run("UPDATE runs SET final_weights = NULL")
    assert {"lost", "unaccounted"} <= honest.kinds()


def test_an_episode_that_is_said_not_to_be_there_is_lost(honest):
    told = json.dumps({"error": {"kind": "not-found", "message": "m", "retryable": False}})
    honest.edit(
        "wire.jsonl", lambda lines: lines.append(steps(lines)[0] | {"status": 404, "text": told})
    )
    assert honest.kinds() == {"lost"}


def test_an_answer_that_is_denied_to_who_asks_again_is_found(honest):
    honest.edit(
        "wire.jsonl", lambda lines: lines.append(steps(lines)[0] | DENIED | {"sent": LATER})
    )
    assert honest.kinds() == {"denied"}


def test_a_step_that_was_asked_for_too_early_may_be_refused(honest):
    honest.edit("wire.jsonl", lambda lines: lines.append(steps(lines)[1] | DENIED | {"sent": 0.0}))
    assert honest.kinds() == set()


def test_a_step_with_two_answers_is_doubled(honest):
    def answer_again(lines):
        first, second, *_ = steps(lines)
        lines.append(first | {"text": second["text"]})

    honest.edit("wire.jsonl", answer_again)
    assert "doubled" in honest.kinds()


def test_a_step_that_was_taken_with_two_actions_is_doubled(honest):
    def act_again(lines):
        first = steps(lines)[0]
        lines.append(first | {"body": first["body"] | {"action": "ls"}})

    honest.edit("wire.jsonl", act_again)
    assert "doubled" in honest.kinds()


def test_an_answer_in_another_simulators_name_is_crossed(honest):
    honest.edit("wire.jsonl", lambda lines: steps(lines)[0].update(simulator="another"))
    assert honest.kinds() == {"crossed_versions"}


def test_an_observation_of_another_versions_engine_is_crossed(honest):
    honest.edit("said.jsonl", lambda lines: lines[0].update(version="second"))
    assert honest.kinds() == {"crossed_versions"}


def test_a_run_that_moved_to_another_simulator_is_crossed(honest):
    honest.edit("wire.jsonl", lambda lines: change_answer(lines[-1], simulator="another"))
    assert "crossed_versions" in honest.kinds()


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_reward_in_an_open_episode_is_found(honest, reward):
    honest.edit("wire.jsonl", lambda lines: change_answer(steps(lines)[0], reward=reward))
    assert "rewarded" in honest.kinds()


def test_a_right_answer_that_is_not_rewarded_is_found(honest):
    honest.run("UPDATE steps SET reward = 0.0 WHERE reward = 1.0")
    assert "rewarded" in honest.kinds()


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (500, "Internal Server Error"),
        (503, '{"error": {"kind": "store", "message": "m"}}'),
        (500, '{"error": {"kind": "internal", "message": "m", "retryable": false}}'),
        (200, "<html>"),
    ],
)
def test_a_failure_without_a_type_is_found(honest, status, text):
    honest.edit("wire.jsonl", lambda lines: refuse(lines, status, text))
    assert honest.kinds() == {"untyped"}


def test_an_episode_that_stays_open_is_found(honest):
    honest.run("UPDATE episodes SET closed = NULL")
    assert "unaccounted" in honest.kinds()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM log WHERE sequence = 3",
        "UPDATE runs SET length = length + 1",
        "UPDATE steps SET entry = 1 WHERE number = 3",
    ],
)
def test_a_log_with_a_gap_is_found(honest, statement):
    honest.run(statement)
    assert "unaccounted" in honest.kinds()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE steps SET head = replace(head, '0', '1')",
        "UPDATE steps SET action_digest = observation_digest",
        "UPDATE episodes SET opening = CAST(replace(opening, 'kolu', 'kola') AS BLOB)",
        "UPDATE episodes SET copied = copied + 1",
        "UPDATE steps SET number = 7 WHERE number = 2",
    ],
)
def test_a_chain_that_does_not_hold_is_found(honest, statement):
    honest.run(statement)
    assert "unchained" in honest.kinds()


def test_an_episode_with_the_steps_of_another_is_found(honest):
    honest.run("UPDATE episodes SET key = -key")
    honest.run("UPDATE episodes SET key = key + 1 + (SELECT count(*) FROM episodes)")
    assert {"lost", "unchained"} <= honest.kinds()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM checkpoints",
        "UPDATE checkpoints SET length = length - 1",
        "UPDATE log SET body = CAST(replace(body, ':', ': ') AS BLOB)",
    ],
)
def test_a_log_that_is_not_signed_is_found(honest, statement):
    honest.run(statement)
    assert "unsigned" in honest.kinds()


def test_a_checkpoint_without_its_copy_is_found(honest):
    shutil.rmtree(honest.folder / "checkpoints")
    assert honest.kinds() == {"unsigned"}


def test_a_copy_without_its_checkpoint_is_no_lie(honest):
    honest.run("DELETE FROM checkpoints WHERE length < (SELECT max(length) FROM checkpoints)")
    assert honest.kinds() == set()


def test_a_checkpoint_of_an_unknown_key_is_found(honest):
    for path in (honest.folder / "keys/simulator/trusted").glob("*.pem"):
        path.unlink()
    assert honest.kinds() == {"unsigned"}
