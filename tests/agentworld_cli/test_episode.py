import json
import sqlite3

import pytest

from make import records


def test_the_episodes_of_a_run_are_listed(call, example):
    (line,) = call(f"episode list {example.run} --store {example.store}").out.splitlines()
    assert line == f"{example.episode}  3 steps, reward 1, done, {records.task().id}"
    (entry,) = json.loads(call(f"episode list {example.run} --store {example.store} --json").out)
    assert entry == {
        "episode": example.episode,
        "task": records.task().id,
        "num_steps": 3,
        "reward": 1.0,
        "closed": "done",
    }


@pytest.mark.parametrize("where", ["--store {0.store}", "--url {0.url}"])
def test_episode_show_escapes_control_characters(call, example, where):
    out = call(f"episode show {example.episode} {where.format(example)}").out
    assert r"> cat \x1b[2J\x00\ud800" in out
    assert all(character.isprintable() or character == "\n" for character in out)
    assert "reward 1, done" in out


def test_episode_show_as_json_is_complete_and_ascii(call, example):
    out = call(f"episode show {example.episode} --store {example.store} --json").out
    assert out.isascii()
    assert json.loads(out)["steps"][1]["observation"] == "cat \x1b[2J\x00\ud800\n[0] ~"


def test_an_unchanged_episode_verifies(call, example):
    result = call(f"episode verify {example.episode} --store {example.store} --json")
    assert (result.code, json.loads(result.out)["grade"]) == (0, "verified")


def test_verifying_a_broken_episode_prints_its_problems_and_fails(call, example):
    with sqlite3.connect(example.store / "ledger.db") as database:
        database.execute("UPDATE steps SET observation = x'41' WHERE number = 1")
    result = call(f"episode verify {example.episode} --store {example.store}")
    assert result.code == 8
    assert "do not follow from each other" in result.out


def test_verifying_an_episode_missing_from_the_ledger_prints_one_sentence_and_fails(call, example):
    with sqlite3.connect(example.store / "ledger.db") as database:
        database.execute("DELETE FROM steps")
        database.execute("DELETE FROM episodes")
    result = call(f"episode verify {example.episode} --store {example.store}")
    assert result.code == 8
    assert f"was opened in run {example.run} (entry 2 of its log) and is missing" in result.error
    assert result.error.count("\n") == 1


def test_an_episode_is_forked_at_a_step(call, example):
    result = call(f"episode fork {example.episode} --step 2 --url {example.url}")
    fork = example.ledger.episode(result.out.strip())
    assert (len(fork.steps), fork.run) == (2, example.run)


@pytest.mark.waits
def test_an_episode_of_a_closed_run_is_forked_in_another_run(call, example):
    weights = records.digest("final")
    call(f"run close {example.run} --weights {weights} --url {example.url}")
    result = call(f"episode fork {example.episode} --step 1 --url {example.url}")
    assert "is closed" in result.error
    run = call(f"run open --name a --weights {weights} --url {example.url}").out.strip()
    output = call(f"episode fork {example.episode} --step 1 --run {run} --url {example.url} --json")
    assert example.ledger.episode(json.loads(output.out)["episode"]).run == run


@pytest.mark.waits
def test_an_episode_is_replayed_byte_for_byte(call, example):
    result = call(f"episode replay {example.episode} --url {example.url} --json")
    report = json.loads(result.out)
    assert (result.code, report["num_steps"], report["differences"]) == (0, 3, [])


@pytest.mark.waits
def test_an_open_episode_can_be_erased_only_after_closing(call, example):
    fork = call(f"episode fork {example.episode} --step 1 --url {example.url}").out.strip()
    erase = f"episode erase {fork} --yes --store {example.store}"
    assert "is open; close it" in call(erase).error
    assert call(f"episode close {fork} --url {example.url}").code == 0
    assert example.ledger.episode(fork).closed == "closed"
    assert call(erase).code == 0


@pytest.mark.waits
def test_an_erased_episode_has_no_texts_and_still_verifies(call, example):
    words = f"episode erase {example.episode} --store {example.store}"
    result = call(words)
    assert result.code == 2
    assert "for good; add --yes" in result.error
    assert call(f"{words} --yes").code == 0
    text = call(f"episode show {example.episode} --store {example.store}").out
    assert text.count("(erased)") == 7
    assert call(f"episode verify {example.episode} --store {example.store}").code == 0
    replay = call(f"episode replay {example.episode} --url {example.url}")
    assert "was erased by retention" in replay.error


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("show gone", "there is no episode gone"),
        ("verify gone", "there is no episode gone"),
        ("erase gone --yes", "there is no episode gone"),
        ("list gone", "there is no run gone"),
        ("show gone --url {0.url}", "there is no episode gone"),
        ("close gone --url {0.url}", "there is no episode gone"),
        ("fork gone --step 1 --url {0.url}", "there is no episode gone"),
        ("fork {0.episode} --step 9 --url {0.url}", "has 3 steps and no step 9"),
        ("replay gone --url {0.url}", "there is no episode gone"),
    ],
)
def test_invalid_episode_commands_print_one_sentence(call, example, words, sentence):
    options = "" if "--url" in words else f" --store {example.store}"
    result = call(f"episode {words.format(example)}{options}")
    assert result.code != 0
    assert sentence in result.error
    assert result.error.count("\n") == 1
