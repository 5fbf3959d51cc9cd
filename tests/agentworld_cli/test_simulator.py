"""The commands `simulator` and `alias`, with text and JSON output."""

import getpass
import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from agentworld.errors import InputError
from agentworld.operations import serving
from agentworld.operations.ledger import open_ledger
from agentworld.pinning.manifest import pin
from agentworld.recipes import load_recipe
from agentworld.recipes.serve import SimulateRecipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.statements.alias import Canary
from agentworld.signing.envelope import Statement
from agentworld.storage.objects import ObjectStore
from agentworld.storage.simulators import SimulatorStore
from agentworld_cli.main import main
from fakes import endpoint
from machines.processes import processes_with
from make import records
from waiting import DEADLINE, wait_for

ENDPOINT = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "m"}
SHELL = "You simulate a shell."


@pytest.fixture(autouse=True)
def no_registry(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """A command's output; with `status`, its error message before that exit status."""

    def run(*words, status=None):
        monkeypatch.setattr(sys, "argv", ["agentworld", *words, "--store", str(tmp_path)])
        with pytest.raises(SystemExit) as exit_info:
            main()
        output = capsys.readouterr()
        assert (exit_info.value.code or 0) == (status or 0), output.err
        return output.err if status else output.out

    return run


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("name: mine\nsimulate:\n  sampling:\n    max_tokens: 40\n")
    return str(path)


@pytest.mark.compute
def test_weights_are_imported_and_shown(call, recipe, tiny_model):
    words = ("--recipe", recipe, "--text", SHELL, "--domain", "shell", "--json")
    result = json.loads(call("simulator", "import", str(tiny_model), *words))
    assert result["validated"] is False
    entry = json.loads(call("simulator", "show", result["simulator"][7:15], "--json"))
    assert (entry["simulator"], entry["folder"]) == (result["simulator"], result["folder"])
    assert (entry["verifiable"], entry["validated"]) == (True, False)
    (domain,) = entry["manifest"]["domains"].items()
    assert domain == ("shell", {"system_prompt": SHELL, "version": "shell-v1"})


def test_the_model_signing_statement_contains_every_file(call, tmp_path):
    simulator = records.pinned(tmp_path)
    text = call("simulator", "show", simulator.digest, "--model-signing", "--json")
    statement = Statement.parse(text.encode())
    assert statement.canonical == text.encode()
    digests = {file["name"]: file["digest"] for file in statement.predicate["resources"]}
    files = simulator.manifest.files
    assert digests == {name: digest.removeprefix("sha256:") for name, digest in files.items()}


def test_an_endpoint_simulator_has_no_files_to_sign(call, tmp_path):
    simulator = records.pinned(tmp_path, artifact=None, files={}, engine=ENDPOINT)
    words = ("simulator", "show", simulator.digest, "--model-signing")
    assert "has no files to sign" in call(*words, status=2)


@pytest.fixture
def requested_engines(monkeypatch):
    """The requested engines of simulators, and their addresses; no engine is started."""
    requests = []

    def serve_locally(_folder, engine, _store, _logs, address):
        requests.append((engine, address))
        raise InputError("this is not started")

    monkeypatch.setattr(serving, "serve_locally", serve_locally)
    return requests


def test_a_simulator_is_served_by_its_pinned_engine(call, tmp_path, requested_engines):
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nengine:\n  cache_blocks: 7\n  dtype: bfloat16\n")
    recipe = load_recipe(path).engine
    manifest = pin(
        ArtifactManifest(files=records.manifest().files),
        SimulateRecipe(),
        recipe,
        lock=records.digest("lock"),
        context_tokens=512,
    )
    digest = records.pinned(tmp_path, **manifest.model_dump()).digest
    call("simulator", "serve", digest, "--access", "local", status=2)
    call("simulator", "serve", digest, "--access", "local", "--concurrency", "3", status=2)
    concurrent_recipe = recipe.model_copy(update={"concurrency": 3})
    assert [engine for engine, _ in requested_engines] == [recipe, concurrent_recipe]


def service_of(launcher):
    """The process of the service, once it has started."""
    processes = []

    def has_started():
        processes.extend(processes_with("agentworld.serving.main", launcher.pid))
        return processes

    wait_for(has_started)
    return processes[0]


@pytest.mark.waits
def test_simulator_serve_fails_with_the_reason_if_its_service_dies(tmp_path):
    simulator = records.pinned(tmp_path, artifact=None, files={}, engine=ENDPOINT)
    words = "simulator", "serve", simulator.digest, "--access", "local", "--store", str(tmp_path)
    command = [sys.executable, "-m", "agentworld_cli.main", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as launcher:
        try:
            assert b"answers at http://" in launcher.stdout.readline()
            service_of(launcher).kill()
            _, output = launcher.communicate(timeout=DEADLINE)
        finally:
            launcher.kill()
    assert launcher.returncode not in (0, None)
    assert b"the simulator service ended with status -9; the end of" in output


def test_an_endpoint_simulator_is_served_without_a_recipe(call, tmp_path, requested_engines):
    simulator = records.pinned(tmp_path, artifact=None, files={}, engine=ENDPOINT)
    words = ("--access", "local", "--concurrency", "2")
    call("simulator", "serve", simulator.digest, *words, status=2)
    assert [engine.concurrency for engine, _ in requested_engines] == [2]


def test_simulator_serve_uses_the_given_access_and_port(call, tmp_path, requested_engines):
    digest = records.pinned(tmp_path).digest
    for words in (["local"], ["access.yaml", "--port", "8001"]):
        call("simulator", "serve", digest, "--access", *words, status=2)
    assert [address for _, address in requested_engines] == [("local", None), ("access.yaml", 8001)]


def test_simulator_serve_requires_the_access_option(call, tmp_path, requested_engines):
    digest = records.pinned(tmp_path).digest
    assert "--access" in call("simulator", "serve", digest, status=2)
    assert requested_engines == []


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http"])
def test_an_invalid_port_is_refused(call, tmp_path, requested_engines, port):
    digest = records.pinned(tmp_path).digest
    words = ("--access", "local", "--port", port)
    assert "--port" in call("simulator", "serve", digest, *words, status=2)
    assert requested_engines == []


def test_a_simulator_of_an_endpoint_and_a_prompt_file_is_reported_as_unverifiable(call, tmp_path):
    (tmp_path / "prompt.txt").write_text(SHELL + "\n")
    with endpoint.running(lambda _asked: "~") as server:
        options = ("--endpoint", server.url, "--model", "m", "--text", str(tmp_path / "prompt.txt"))
        result = json.loads(call("simulator", "prompt", *options, "--json"))
    entry = json.loads(call("simulator", "show", result["simulator"], "--json"))
    (domain,) = entry["manifest"]["domains"].items()
    assert domain == ("text", {"system_prompt": SHELL, "version": "text-v1"})
    assert entry["verifiable"] is False
    assert "unvalidated, cannot be verified" in call("simulator", "list")
    assert "the model behind its endpoint cannot be verified" in call(
        "simulator", "verify", result["simulator"]
    )


def test_a_one_word_prompt_is_read_as_a_file_name(call):
    words = ("--endpoint", "http://127.0.0.1:9", "--model", "m", "--text", "promt.txt")
    assert "cannot read promt.txt" in call("simulator", "prompt", *words, status=2)


@pytest.mark.parametrize(
    ("answers", "state"),
    [
        ({}, "validated by 100 answers,"),
        ({"cut_off": 100}, "unvalidated by 100 answers, 100 cut off,"),
        ({"missing": 2, "cut_off": 1}, "unvalidated by 100 answers, 2 missing, 1 cut off,"),
    ],
)
def test_a_report_validates_a_simulator_unless_answers_are_missing_or_cut_off(
    call, tmp_path, answers, state
):
    simulator = records.pinned(tmp_path)
    report = records.grouped_report(simulator.manifest.artifact, **answers)
    report.write(tmp_path / "report.json")
    words = (str(tmp_path / "report.json"), "--json")
    first = json.loads(call("simulator", "attach", simulator.digest, *words))
    (second,) = json.loads(call("simulator", "list", "--json"))
    for entry in (first, second, json.loads(call("simulator", "show", simulator.digest, "--json"))):
        assert entry["validated"] == (not answers)
        assert entry["answers"]["num"] == 100
        assert len(entry["problems"]) == len(answers)
    assert f", {state} " in call("simulator", "list")
    assert "answers.num" in call("simulator", "show", simulator.digest)


def test_attaching_a_report_of_another_simulator_is_refused(call, tmp_path):
    simulator = records.pinned(tmp_path)
    records.agent_report(simulator=records.digest("other")).write(tmp_path / "report.json")
    report = str(tmp_path / "report.json")
    assert "is about" in call("simulator", "attach", simulator.digest, report, status=2)


def test_a_simulator_verifies_by_alias_and_digest_until_a_file_is_missing(call, tmp_path):
    simulator = records.pinned(tmp_path)
    call("alias", "set", "production", simulator.digest[:20])
    for name in ("production", simulator.digest):
        report = json.loads(call("simulator", "verify", name, "--json"))
        assert report == {"simulator": simulator.digest, "files": 1}
    (simulator.model / "model.safetensors").unlink()
    assert "model.safetensors does not match" in call("simulator", "verify", "production", status=8)


def test_a_changed_manifest_does_not_verify(call, tmp_path):
    simulator = records.pinned(tmp_path)
    (simulator.folder / "manifest.json").write_bytes(b"{}")
    assert "manifest.json is not the pinned manifest" in call(
        "simulator", "verify", simulator.digest, status=8
    )


@pytest.mark.compute
def test_an_alias_is_set_shown_with_its_history_and_listed(call, tmp_path):
    old, new = records.pinned(tmp_path), records.pinned(tmp_path, context_tokens=512)
    for simulator in (old, new):
        change = json.loads(call("alias", "set", "production", simulator.digest, "--json"))
        assert change["simulator"] == simulator.digest
    history = json.loads(call("alias", "show", "production", "--json"))
    assert [change["simulator"] for change in history] == [old.digest, new.digest]
    (entry,) = json.loads(call("alias", "list", "--json"))
    assert (entry["alias"], entry["simulator"]) == ("production", new.digest)
    assert f"production  {new.digest}  since " in call("alias", "list")


@pytest.mark.compute
def test_audit_alias_prints_the_target_at_a_time_with_the_surrounding_changes(call, tmp_path):
    old, new = records.pinned(tmp_path), records.pinned(tmp_path, context_tokens=512)
    call("alias", "set", "production", old.digest)
    time.sleep(0.01)  # the times of changes are in milliseconds
    (first,) = json.loads(call("alias", "show", "production", "--json"))
    call("alias", "set", "production", new.digest)
    audit = json.loads(call("audit", "alias", "production", "--at", first["at"], "--json"))
    assert (audit["simulator"], audit["since"]["at"]) == (old.digest, first["at"])
    assert audit["until"]["simulator"] == new.digest
    current_lines = call("audit", "alias", "production").splitlines()
    assert current_lines[0].startswith("production at 20")
    assert current_lines[0].endswith(f": {new.digest}")
    assert current_lines[1].startswith(f"by  production  {new.digest}  since ")
    earlier_lines = call("audit", "alias", "production", "--at", "2020-01-01").splitlines()
    assert earlier_lines[0] == "production at 2020-01-01T00:00:00+00:00: nothing"
    assert earlier_lines[1].startswith(f"until  production  {old.digest}")


def test_audit_alias_reports_a_changed_history(call, tmp_path):
    call("alias", "set", "production", records.pinned(tmp_path).digest)
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as database, database:
        database.execute("UPDATE aliases SET set_by = 'mallory'")
    for words in ([], ["--json"]):
        message = call("audit", "alias", "production", *words, status=8)
        assert "the history of names is not the one that was signed" in message


def test_the_alias_history_contains_the_canary_the_report_and_the_end(call, tmp_path):
    simulator = records.pinned(tmp_path)
    fields = {"report": records.digest("report"), "override": "an outage\x1b[2J"}
    canary = Canary(simulator=records.digest("next"), percent=5)
    with closing(open_ledger(tmp_path)) as ledger:
        ledger.aliases.set("production", simulator.digest, "ada", canary=canary, **fields)
    listing = call("alias", "list")
    assert f"5 % of runs with {canary.simulator}, shown by {fields['report']}" in listing
    assert "\x1b" not in listing
    with closing(open_ledger(tmp_path)) as ledger:
        ledger.aliases.end("production", "bob")
    assert call("alias", "list") == ""
    assert "production  nothing  since" in call("alias", "show", "production")
    first, last = json.loads(call("alias", "show", "production", "--json"))
    assert first["canary"] == {"simulator": canary.simulator, "percent": 5}
    assert (last["ended"], last["set_by"]) == (True, "bob")


def test_an_attached_report_is_put_in_the_object_store(call, tmp_path):
    simulator = records.pinned(tmp_path)
    report = records.agent_report(simulator=simulator.digest)
    report.write(tmp_path / "report.json")
    call("simulator", "attach", simulator.digest, str(tmp_path / "report.json"))
    assert ObjectStore(str(tmp_path / "objects")).get(report.digest) == report.canonical


@pytest.fixture
def setter(call, tmp_path):
    """Sets an alias to a simulator whose report has a live gain of 0.4."""
    simulator = records.pinned(tmp_path)
    report = records.agent_report(simulator=simulator.digest)
    report.write(tmp_path / "report.json")
    call("simulator", "attach", simulator.digest, str(tmp_path / "report.json"))

    def set_(*gates, report=report.digest, **options):
        words = [word for gate in gates for word in ("--gate", gate)]
        words += ["--gate-report", report] if report else []
        return call("alias", "set", "production", simulator.digest, *words, **options)

    set_.report = report.digest
    return set_


def history(call):
    return json.loads(call("alias", "list", "--json"))


def test_a_passed_gate_moves_the_alias_and_is_recorded(call, setter):
    assert "live_gain 0.4 of at least 0.3" in setter("live_gain=0.3", "trained.live=0.5")
    (change,) = history(call)
    assert (change["report"], change["set_by"]) == (setter.report, getpass.getuser())
    assert change["gate"] == [
        {"metric": "live_gain", "least": 0.3, "value": pytest.approx(0.4)},
        {"metric": "trained.live", "least": 0.5, "value": pytest.approx(0.5)},
    ]


@pytest.mark.parametrize(
    ("gate", "report", "words"),
    [
        ("live_gain=0.5", ..., "live_gain is 0.4 in the report"),
        ("exact_match=0.5", ..., "has no exact_match of"),
        ("live_gain=0.3", None, "the gate asks for live_gain of at least 0.3 and no report is"),
        ("live_gain=0.3", records.digest("lost"), "is not in the object store; put it there with"),
        ("live_gain", ..., "'live_gain' is not a gate; write METRIC=LEAST"),
        ("live_gain=0.3", "sha256:12ab", "'sha256:12ab' is not a digest; give sha256: and 64"),
    ],
)
def test_a_failed_gate_prints_one_sentence_and_moves_no_alias(call, setter, gate, report, words):
    message = setter(gate, report=setter.report if report is ... else report, status=2)
    assert words in message
    assert (message.count("\n"), message.startswith("error: ")) == (1, True)
    assert history(call) == []


def test_an_override_moves_an_alias_and_its_reason_is_recorded(call, setter, tmp_path):
    name = records.pinned(tmp_path).digest
    words = ("--gate", "live_gain=0.5", "--gate-report", setter.report, "--override", "an outage")
    change = json.loads(call("alias", "set", "production", name, *words, "--json"))
    assert (change["override"], change["gate"][0]["value"]) == ("an outage", pytest.approx(0.4))
    assert history(call) == [change]
    for reason in ("", "x" * 1025):
        words = ("--gate", "live_gain=0.5", "--override", reason)
        assert "correct override" in call("alias", "set", "production", name, *words, status=2)


def test_a_report_of_another_simulator_moves_no_alias_despite_an_override(call, tmp_path):
    report = records.agent_report(simulator=records.digest("other"))
    ObjectStore(str(tmp_path / "objects")).put(report.canonical)
    words = ("--gate-report", report.digest, "--override", "an outage")
    name = records.pinned(tmp_path).digest
    assert "is not an evaluation of" in call("alias", "set", "production", name, *words, status=2)
    assert history(call) == []


def test_a_gate_accepts_an_evaluation_of_the_simulators_weights(call, tmp_path):
    simulator = records.pinned(tmp_path)
    report = records.world_report(artifacts={"rl": simulator.manifest.artifact})
    ObjectStore(str(tmp_path / "objects")).put(report.canonical)
    words = ("--gate", "exact_match=0.8", "--gate-report", report.digest)
    assert "exact_match 0.82" in call("alias", "set", "production", simulator.digest, *words)


def test_a_store_without_simulators_lists_none_and_stays_empty(call, tmp_path):
    assert json.loads(call("simulator", "list", "--json")) == []
    assert json.loads(call("alias", "list", "--json")) == []
    assert list(tmp_path.iterdir()) == []
    assert SimulatorStore(tmp_path).all() == []


def test_simulator_list_escapes_control_characters_in_model_names(call, tmp_path):
    engine = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "m\x1b[2J"}
    records.pinned(tmp_path, artifact=None, files={}, engine=engine)
    assert "\x1b" not in call("simulator", "list")
