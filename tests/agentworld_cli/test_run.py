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


def test_a_run_is_opened_and_closed_at_a_service(call, example):
    starting_weights = records.digest("starting")
    open_result = call(
        f"run open --name a --weights {starting_weights} --by me --url {example.url}"
    )
    run = open_result.out.strip()
    assert example.ledger.run(run).opening.opened_by == "me"
    close_result = call(f"run close {run} --weights {FINAL} --url {example.url} --json")
    assert json.loads(close_result.out)["closing"]["final_weights"] == FINAL
    assert (open_result.code, close_result.code) == (0, 0)


def test_a_run_is_closed_with_a_signature_from_a_file(call, example, tmp_path):
    run_weights = RunWeights(run=example.run, simulator=make.service.SIMULATOR, weights=FINAL)
    signature = sign_weights(run_weights, load_signer(example.store / "keys" / STEP_KEYS))
    (tmp_path / "signature").write_text(signature + "\n")
    words = f"--weights {FINAL} --signature {tmp_path / 'signature'} --url {example.url} --json"
    run = json.loads(call(f"run close {example.run} {words}").out)
    assert run["closing"]["signature"] == signature
    result = call(f"run verify {example.run} --store {example.store} --json")
    assert json.loads(result.out)["weights"] == "signed"


def test_an_empty_signature_file_closes_no_run(call, example, tmp_path):
    (tmp_path / "empty").touch()
    words = f"--weights {FINAL} --signature {tmp_path / 'empty'} --url {example.url}"
    result = call(f"run close {example.run} {words}")
    assert "cannot be closed with this signature" in result.error
    assert example.ledger.run(example.run).closing is None


def test_run_open_prints_json(call, example):
    result = call(f"run open --name a --weights {FINAL} --url {example.url} --json")
    assert json.loads(result.out)["simulator"] == make.service.SIMULATOR


@pytest.mark.parametrize("simulator", [make.service.SIMULATOR, "production"])
def test_a_run_is_opened_with_the_digest_or_alias_of_a_simulator(call, example, simulator):
    example.ledger.aliases.set("production", make.service.SIMULATOR, "me")
    result = call(
        f"run open --name a --weights {FINAL} --simulator {simulator} --url {example.url}"
    )
    assert example.ledger.run(result.out.strip()).simulator == make.service.SIMULATOR


def test_a_run_with_another_simulator_is_refused(call, example):
    result = call(f"run open --name a --weights {FINAL} --simulator {FINAL} --url {example.url}")
    assert result.code == 6
    assert result.error.count("\n") == 1


def test_runs_are_listed(call, example):
    (line,) = call(f"run list --store {example.store}").out.splitlines()
    assert line.startswith(f"{example.run}  training of shell-agent in sha256:")
    assert line.endswith("1 episode, 3 steps, open")
    (entry,) = json.loads(call(f"run list --store {example.store} --json").out)
    assert entry["id"] == example.run


@pytest.mark.parametrize(("purpose", "ending"), [("training", "made {}"), ("evaluation", "closed")])
def test_run_list_shows_final_weights_only_for_training_runs(call, example, purpose, ending):
    opening = RunOpening(agent="a", starting_weights=FINAL, purpose=purpose)
    run = example.ledger.open_run(opening, make.service.SIMULATOR)
    example.ledger.close_run(run.id, RunClosing(final_weights=FINAL))
    line, _ = call(f"run list --store {example.store}").out.splitlines()
    assert line.endswith(f"0 steps, {ending.format(FINAL[:19])}")


@pytest.mark.parametrize("where", ["--store {0.store}", "--url {0.url}"])
def test_a_run_is_shown_from_the_store_or_from_the_service(call, example, where):
    result = call(f"run show {example.run} {where.format(example)} --json")
    assert json.loads(result.out)["num_steps"] == 3


def test_an_unchanged_run_verifies(call, example):
    result = call(f"run verify {example.run} --store {example.store}")
    assert result.code == 0
    assert "verified" in result.out


def test_verifying_a_broken_run_prints_its_problems_and_fails(call, example):
    with sqlite3.connect(example.store / "ledger.db") as database:
        database.execute("UPDATE steps SET reward = 0.5 WHERE number = 1")
    result = call(f"run verify {example.run} --store {example.store}")
    assert result.code == 8
    assert f"the steps of episode {example.episode} do not follow from each other" in result.out
    assert result.error.count("\n") == 1
    as_json = call(f"run verify {example.run} --store {example.store} --json")
    assert as_json.code == 8
    assert json.loads(as_json.out)["grade"] == "broken"


def test_run_verify_without_public_keys_is_refused(call, example):
    shutil.rmtree(example.store / "keys")
    result = call(f"run verify {example.run} --store {example.store}")
    assert result.code == 2
    assert "holds no public key" in result.error


def test_run_join_matches_the_trajectory_log_with_the_ledger(call, example):
    words = f"run join {example.run} --trajectory {example.trajectory} --store {example.store}"
    result = call(f"{words} --json")
    assert (result.code, json.loads(result.out)["num_matched"]) == (0, 3)


def test_run_join_fails_if_the_logs_differ(call, example):
    (file,) = example.trajectory.iterdir()
    file.write_text(file.read_text().replace('"reward":1.0', '"reward":0.0'))
    words = f"run join {example.run} --trajectory {example.trajectory} --store {example.store}"
    result = call(words)
    assert result.code == 8
    assert "other reward" in result.out
    assert "differ; see the counts above" in result.error


def test_a_run_is_exported(call, example, tmp_path):
    words = f"--trajectory {example.trajectory} --store {example.store} --out {tmp_path / 'out'}"
    result = call(f"run export {example.run} {words} --json")
    report = json.loads(result.out)
    assert (report["num_transitions"], report["num_trajectories"]) == (3, 3)
    assert pq.read_table(report["transitions"]).num_rows == 3


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
            marks=pytest.mark.waits,  # the request is repeated
        ),
    ],
)
def test_invalid_run_commands_print_one_sentence(call, example, words, sentence):
    options = "" if "--url" in words else f" --store {example.store}"
    result = call(words.format(example) + options)
    assert result.code != 0
    assert sentence in result.error
    assert result.error.count("\n") == 1


@pytest.mark.parametrize("verb", ["list", "show x", "verify x", "export x --out out"])
def test_a_store_without_a_ledger_stays_empty(call, tmp_path, verb):
    result = call(f"run {verb} --store {tmp_path}")
    assert "holds no ledger" in result.error
    assert list(tmp_path.iterdir()) == []


def test_the_run_of_a_tenant_is_listed_and_shown_with_the_tenant(call, example):
    run = example.ledger.open_run(make.service.OPENING, make.service.SIMULATOR, None, "acme").id
    tenant_line, local_line = call(f"run list --store {example.store}").out.splitlines()
    assert tenant_line.startswith(f"{run}  training of shell-agent in sha256:")
    assert tenant_line.endswith(" for tenant acme, 0 episodes, 0 steps, open")
    assert "tenant" not in local_line
    entries = json.loads(call(f"run list --store {example.store} --json").out)
    assert [entry["tenant"] for entry in entries] == ["acme", "local"]
    assert "'acme'" in call(f"run show {run} --store {example.store}").out


@pytest.fixture
def guarded(tmp_path):
    """The address of a service with authentication."""
    service = make.service.service(tmp_path, access=make.access.Checked(tmp_path))
    with make.service.listening(service.app) as url:
        yield url


@pytest.mark.waits
def test_commands_use_the_credential_from_the_environment(call, guarded, monkeypatch):
    words = f"run open --name a --weights {FINAL} --url {guarded}"
    anonymous = call(words)
    assert (anonymous.code, anonymous.out) == (6, "")
    assert "an API key" in anonymous.error
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL", make.access.key("acme-agent") + "\n")
    run = json.loads(call(f"{words} --json").out)
    assert (run["tenant"], run["opening"]["opened_by"]) == ("acme", "acme/agent")
    monkeypatch.setenv("AGENTWORLD_CREDENTIAL", run["token"])
    result = call(f"run show {run['id']} --url {guarded} --json")
    assert json.loads(result.out)["id"] == run["id"]
    assert call(words).code == 6


def test_commands_accept_a_credential_in_the_address(call, guarded):
    address = guarded.replace("http://", f"http://me:{make.access.key('acme-agent')}@")
    assert call(f"run open --name a --weights {FINAL} --url {address}").code == 0
