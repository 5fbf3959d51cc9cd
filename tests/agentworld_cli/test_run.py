import json
import shutil
import sqlite3

import pyarrow.parquet as pq
import pytest

import make.access
import make.service
from agentworld.records.run import RunClosing, RunOpening
from agentworld.signing.keys import STEP_KEYS, load_signer
from agentworld.signing.weights import RunWeights, sign_weights
from make import records

FINAL = records.digest("final")


def test_a_run_is_opened_and_closed_at_a_service(call, played):
    started = records.digest("starting")
    opened = call(f"run open --name a --weights {started} --by me --url {played.url}")
    run = opened.out.strip()
    assert played.ledger.run(run).opening.opened_by == "me"
    closed = call(f"run close {run} --weights {FINAL} --url {played.url} --json")
    assert json.loads(closed.out)["closing"]["final_weights"] == FINAL
    assert (opened.code, closed.code) == (0, 0)


def test_a_run_is_closed_with_a_signature_from_a_file(call, played, tmp_path):
    made = RunWeights(run=played.run, simulator=make.service.SIMULATOR, weights=FINAL)
    signature = sign_weights(made, load_signer(played.store / "keys" / STEP_KEYS))
    (tmp_path / "signature").write_text(signature + "\n")
    words = f"--weights {FINAL} --signature {tmp_path / 'signature'} --url {played.url} --json"
    closed = json.loads(call(f"run close {played.run} {words}").out)
    assert closed["closing"]["signature"] == signature
    verified = call(f"run verify {played.run} --store {played.store} --json")
    assert json.loads(verified.out)["weights"] == "signed"


def test_an_empty_signature_file_closes_no_run(call, played, tmp_path):
    (tmp_path / "empty").touch()
    words = f"--weights {FINAL} --signature {tmp_path / 'empty'} --url {played.url}"
    done = call(f"run close {played.run} {words}")
    assert "cannot be closed with this signature" in done.error
    assert played.ledger.run(played.run).closing is None


def test_run_open_prints_json(call, played):
    done = call(f"run open --name a --weights {FINAL} --url {played.url} --json")
    assert json.loads(done.out)["simulator"] == make.service.SIMULATOR


@pytest.mark.parametrize("simulator", [make.service.SIMULATOR, "production"])
def test_a_run_is_opened_with_the_digest_or_alias_of_a_simulator(call, played, simulator):
    played.ledger.aliases.set("production", make.service.SIMULATOR, "me")
    done = call(f"run open --name a --weights {FINAL} --simulator {simulator} --url {played.url}")
    assert played.ledger.run(done.out.strip()).simulator == make.service.SIMULATOR


def test_a_run_with_another_simulator_is_refused(call, played):
    done = call(f"run open --name a --weights {FINAL} --simulator {FINAL} --url {played.url}")
    assert done.code == 6
    assert done.error.count("\n") == 1


def test_runs_are_listed(call, played):
    (line,) = call(f"run list --store {played.store}").out.splitlines()
    assert line.startswith(f"{played.run}  training of shell-agent in sha256:")
    assert line.endswith("1 episode, 3 steps, open")
    (told,) = json.loads(call(f"run list --store {played.store} --json").out)
    assert told["id"] == played.run


@pytest.mark.parametrize(("purpose", "ending"), [("training", "made {}"), ("evaluation", "closed")])
def test_run_list_shows_final_weights_only_for_training_runs(call, played, purpose, ending):
    opening = RunOpening(agent="a", starting_weights=FINAL, purpose=purpose)
    run = played.ledger.open_run(opening, make.service.SIMULATOR)
    played.ledger.close_run(run.id, RunClosing(final_weights=FINAL))
    line, _ = call(f"run list --store {played.store}").out.splitlines()
    assert line.endswith(f"0 steps, {ending.format(FINAL[:19])}")


@pytest.mark.parametrize("where", ["--store {0.store}", "--url {0.url}"])
def test_a_run_is_shown_from_the_store_or_from_the_service(call, played, where):
    done = call(f"run show {played.run} {where.format(played)} --json")
    assert json.loads(done.out)["num_steps"] == 3


def test_an_unchanged_run_verifies(call, played):
    done = call(f"run verify {played.run} --store {played.store}")
    assert done.code == 0
    assert "verified" in done.out


def test_verifying_a_broken_run_prints_its_problems_and_fails(call, played):
    with sqlite3.connect(played.store / "ledger.db") as database:
        database.execute("UPDATE steps SET reward = 0.5 WHERE number = 1")
    done = call(f"run verify {played.run} --store {played.store}")
    assert done.code == 8
    assert f"the steps of episode {played.episode} do not follow from each other" in done.out
    assert done.error.count("\n") == 1
    told = call(f"run verify {played.run} --store {played.store} --json")
    assert told.code == 8
    assert json.loads(told.out)["grade"] == "broken"


def test_run_verify_without_public_keys_is_refused(call, played):
    shutil.rmtree(played.store / "keys")
    done = call(f"run verify {played.run} --store {played.store}")
    assert done.code == 2
    assert "holds no public key" in done.error


def test_run_join_matches_the_trajectory_log_with_the_ledger(call, played):
    words = f"run join {played.run} --trajectory {played.trajectory} --store {played.store}"
    done = call(f"{words} --json")
    assert (done.code, json.loads(done.out)["num_matched"]) == (0, 3)


def test_run_join_fails_if_the_logs_differ(call, played):
    (file,) = played.trajectory.iterdir()
    file.write_text(file.read_text().replace('"reward":1.0', '"reward":0.0'))
    words = f"run join {played.run} --trajectory {played.trajectory} --store {played.store}"
    done = call(words)
    assert done.code == 8
    assert "other reward" in done.out
    assert "differ; see the counts above" in done.error


def test_a_run_is_exported(call, played, tmp_path):
    words = f"--trajectory {played.trajectory} --store {played.store} --out {tmp_path / 'out'}"
    done = call(f"run export {played.run} {words} --json")
    told = json.loads(done.out)
    assert (told["num_transitions"], told["num_trajectories"]) == (3, 3)
    assert pq.read_table(told["transitions"]).num_rows == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("run show gone", "there is no run gone"),
        ("run verify gone", "there is no run gone"),
        ("run export gone --out {0.store}/out", "there is no run gone"),
        ("run join {0.run} --trajectory {0.store}/gone", "cannot read"),
        ("run join {0.run} --trajectory {0.store}/keys", "holds no trajectory"),
        ("run open --name a --weights no --url {0.url}", "'no' is not a digest"),
        ("run close {0.run} --weights sha256:0 --url {0.url}", "'sha256:0' is not a digest"),
        ("run close gone --weights " + FINAL + " --url {0.url}", "there is no run gone"),
        (
            "run close {0.run} --weights " + FINAL + " --signature gone --url {0.url}",
            "cannot read gone",
        ),
        ("run show {0.run} --url nowhere", "'nowhere' is not a simulator's address"),
        pytest.param(
            "run show {0.run} --url http://127.0.0.1:9",
            "is it running?",
            marks=pytest.mark.waits,  # for it is asked again
        ),
    ],
)
def test_invalid_run_commands_print_one_sentence(call, played, words, sentence):
    known = "" if "--url" in words else f" --store {played.store}"
    done = call(words.format(played) + known)
    assert done.code != 0
    assert sentence in done.error
    assert done.error.count("\n") == 1


@pytest.mark.parametrize("verb", ["list", "show x", "verify x", "export x --out out"])
def test_a_store_without_a_ledger_stays_empty(call, tmp_path, verb):
    done = call(f"run {verb} --store {tmp_path}")
    assert "holds no ledger" in done.error
    assert list(tmp_path.iterdir()) == []


def test_the_run_of_a_tenant_is_listed_and_shown_with_the_tenant(call, played):
    run = played.ledger.open_run(make.service.OPENING, make.service.SIMULATOR, None, "acme").id
    theirs, local = call(f"run list --store {played.store}").out.splitlines()
    assert theirs.startswith(f"{run}  training of shell-agent in sha256:")
    assert theirs.endswith(" for tenant acme, 0 episodes, 0 steps, open")
    assert "tenant" not in local
    told = json.loads(call(f"run list --store {played.store} --json").out)
    assert [each["tenant"] for each in told] == ["acme", "local"]
    assert "'acme'" in call(f"run show {run} --store {played.store}").out


@pytest.fixture
def guarded(tmp_path):
    """The address of a service with authentication."""
    served = make.service.service(tmp_path, access=make.access.Checked(tmp_path))
    with make.service.listening(served.app) as url:
        yield url


@pytest.mark.waits
def test_commands_use_the_credential_from_the_environment(call, guarded, monkeypatch):
    words = f"run open --name a --weights {FINAL} --url {guarded}"
    nobody = call(words)
    assert (nobody.code, nobody.out) == (6, "")
    assert "an API key" in nobody.error
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL", make.access.key("acme-agent") + "\n")
    opened = json.loads(call(f"{words} --json").out)
    assert (opened["tenant"], opened["opening"]["opened_by"]) == ("acme", "acme/agent")
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL", opened["token"])
    shown = call(f"run show {opened['id']} --url {guarded} --json")
    assert json.loads(shown.out)["id"] == opened["id"]
    assert call(words).code == 6


def test_commands_accept_a_credential_in_the_address(call, guarded):
    there = guarded.replace("http://", f"http://me:{make.access.key('acme-agent')}@")
    assert call(f"run open --name a --weights {FINAL} --url {there}").code == 0
