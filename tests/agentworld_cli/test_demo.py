"""The whole loop through the command line, with tiny models: killed, finished and repeated."""

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from agentworld.recipes import recipe_path
from agentworld.runner.progress import StepProgress, read_progress
from agentworld.steps.table import MAIN_JOB
from make import pages
from make.audit_rows import answered, tables
from make.demo_names import audited
from waiting import JOB_DEADLINE, wait_for

pytestmark = pytest.mark.compute

AUDITS = tables(Path(__file__).parents[1] / "data/audits/demo.txt")


class DemoHistory(NamedTuple):
    """The history of a store."""

    store: Path
    orphans: list[psutil.Process]
    """Processes that outlived a killed demo, when another one took over."""
    finished_before_kill: dict[str, int]
    finished: subprocess.CompletedProcess[str]
    receipts: dict[str, int]
    again: subprocess.CompletedProcess[str]
    receipts_again: dict[str, int]


def command(store: Path, profile: str = "smoke") -> list[str]:
    words = f"-m agentworld_cli.main demo --recipe {profile} --json --store"
    return [sys.executable, *words.split(), str(store)]


def begin(store: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command(store), start_new_session=True, stderr=subprocess.DEVNULL)


def run(store: Path, profile: str = "smoke") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(store, profile),
        capture_output=True,
        text=True,
        timeout=JOB_DEADLINE,
        check=False,
    )


def is_at_work(store: Path, step: str) -> bool:
    progress = read_progress(store, step)
    return progress is not None and progress.state == "running" and progress.done > 0


def receipts(store: Path) -> dict[str, int]:
    """The time at which each step was finished, by its receipt."""
    paths = store.glob("steps/*/*/receipt.json")
    return {str(path.relative_to(store)): path.stat().st_mtime_ns for path in paths}


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture(scope="module")
def history(tmp_path_factory) -> DemoHistory:
    store = tmp_path_factory.mktemp("demo") / "store"
    demo = begin(store)
    wait_for(lambda: is_at_work(store, "sft"), JOB_DEADLINE)
    processes = psutil.Process(demo.pid).children(recursive=True)
    receipts_before = receipts(store)
    demo.kill()
    demo.wait()
    finished = run(store)
    receipts_after = receipts(store)
    orphans = [process for process in processes if is_alive(process)]
    return DemoHistory(
        store, orphans, receipts_before, finished, receipts_after, run(store), receipts(store)
    )


def states(store: Path) -> dict[str, str]:
    all_progress: list[StepProgress | None] = [read_progress(store, step) for step in MAIN_JOB]
    return {progress.step: progress.state for progress in all_progress if progress}


def test_a_killed_demo_leaves_no_process_behind(history):
    assert history.orphans == []


def test_a_killed_demo_resumes_and_succeeds(history):
    assert history.finished.returncode == 0, history.finished.stderr


def test_steps_finished_before_the_kill_are_reused(history):
    steps = {path.split("/")[1] for path in history.finished_before_kill}
    assert steps == {"collect", "prepare", "cpt"}
    for step in steps:
        assert f"{step:<14} reused" in history.finished.stderr
    assert history.finished_before_kill.items() <= history.receipts.items()


def test_every_step_is_finished_once(history):
    assert sorted(path.split("/")[1] for path in history.receipts) == sorted(MAIN_JOB)


def test_a_second_demo_reuses_every_step(history):
    assert history.again.returncode == 0, history.again.stderr
    assert states(history.store) == dict.fromkeys(MAIN_JOB, "reused")
    assert history.receipts_again == history.receipts
    assert (
        json.loads(history.again.stdout)["seconds"]
        == json.loads(history.finished.stdout)["seconds"]
    )


def test_the_summary_file_equals_the_output_and_contains_every_figure(history):
    summary = json.loads((history.store / "summary.json").read_text())
    assert summary == json.loads(history.again.stdout)
    assert set(summary["seconds"]) == set(MAIN_JOB)
    assert summary["agent"]["live_steps_in_training"] == 0
    for stage in ("base", "imitated", "trained"):
        assert set(summary["agent"][stage]) == {"simulated_success", "live_success"}
    for difference in ("rl_gain", "lead"):
        interval = summary["world_model"][difference]
        assert interval["low"] <= interval["mean"] <= interval["high"]
    assert 0 < summary["peak_memory_gib"] < 6
    for figures in (*summary["world_model"]["baseline"].values(), summary["world_model"]["rl"]):
        assert {"history", "output", "unseen"} <= figures["by_tag"].keys()
        shares = [figures["exact_match"], *figures["by_tag"].values()]
        assert all(0 <= share <= 1 for share in shares)


def test_a_refusing_gate_ends_the_job_successfully_and_earlier_steps_are_reused(history, tmp_path):
    store, recipe = tmp_path / "store", tmp_path / "strict.yaml"
    shutil.copytree(history.store, store)
    gate = "gate: [{metric: rl.exact_match, least: 1.1}]\n"
    recipe.write_text(recipe_path("smoke").read_text() + gate)
    result = run(store, str(recipe))
    assert result.returncode == 0, result.stderr
    earlier_steps = MAIN_JOB[: MAIN_JOB.index("gate")]
    assert states(store) == dict.fromkeys(earlier_steps, "reused") | {"gate": "finished"}
    assert f"{'register':<14} skipped" in result.stderr
    summary = json.loads(result.stdout)
    assert summary["gate"]["verdict"] == "refused"
    assert "which is under 1.1" in summary["gate"]["reason"]
    assert (summary["simulator"], summary["agent"]) == (None, None)
    assert "refused" in (store / "report.html").read_text()


def test_the_live_episodes_of_the_agent_at_each_stage_are_kept(history):
    (folder,) = history.store.glob("steps/validate/*/")
    names = sorted(path.name for path in folder.glob("*-live.jsonl"))
    assert names == ["base-live.jsonl", "imitated-live.jsonl", "trained-live.jsonl"]
    assert all((folder / name).read_text().count("\n") == 8 for name in names)


def test_the_demo_writes_a_report(history):
    assert (history.store / "report.html").read_text().startswith("<!doctype html>")


@pytest.fixture
def ask(history, call):
    """Calls a command on the store."""
    return lambda words: call(f"{words} --store {history.store}")


def test_the_trajectory_log_of_every_run_matches_the_ledger(history, ask):
    trajectories = {"training": "agent", "evaluation": "validate"}
    runs = json.loads(ask("run list --json").out)
    agent_runs = [run for run in runs if run["opening"]["agent"] == "shell-agent"]
    assert sorted(run["opening"]["purpose"] for run in agent_runs) == ["evaluation"] * 3 + [
        "training"
    ]
    for run in agent_runs:
        (folder,) = history.store.glob(
            f"steps/{trajectories[run['opening']['purpose']]}/*/trajectory"
        )
        result = ask(f"run join {run['id']} --trajectory {folder} --json")
        assert json.loads(result.out)["num_matched"] == run["num_steps"], result.error


def test_audits_link_the_agent_to_the_simulator_and_the_simulator_to_the_agent(history, ask):
    simulator = json.loads((history.store / "summary.json").read_text())["simulator"]["digest"]
    chain = json.loads(ask("audit agent shell-agent@1 --json").out)
    assert chain["problems"] == []
    assert chain["simulator"] == chain["run"]["simulator"] == simulator
    assert [stage["stage"] for stage in chain["stages"]] == ["cpt", "sft", "rl"]
    assert chain["run"]["num_steps"] > 0
    audit = json.loads(ask(f"audit simulator {simulator} --json").out)
    assert [agent["agent"] for agent in audit["agents"]] == ["shell-agent@1"]


@pytest.mark.parametrize("words", AUDITS)
def test_an_audit_of_the_demo_prints_its_expected_table(history, call, words):
    assert answered(call, words, audited(history.store)) == AUDITS[words]


def test_audit_agent_prints_the_chain_with_whole_digests(ask):
    chain = json.loads(ask("audit agent shell-agent@1 --json").out)
    output = ask("audit agent shell-agent@1").out
    for words in (chain["simulator"], chain["data"], chain["run"]["id"], "agentworld-shell@1"):
        assert words in output


def test_an_unknown_agent_version_is_refused_with_the_known_ones(ask):
    result = ask("audit agent shell-agent@7")
    assert (result.code, result.out) == (2, "")
    assert result.error == "error: there is no version 7 of shell-agent; versions are 1\n"


def test_domain_try_runs_actions_in_the_live_shell_and_in_its_simulator(
    history, tmp_path, call, monkeypatch
):
    store = shutil.copytree(history.store, tmp_path / "store")
    monkeypatch.setattr("sys.stdin", io.StringIO("echo kolu > a.txt\ncat a.txt\n"))
    result = call(f"domain try shell --json --simulator shell --store {store}")
    start, *turns, end = map(json.loads, result.out.splitlines())
    assert [turn["live"] for turn in turns] == ["[0] ~", "kolu\n[0] ~"]
    assert all((turn["simulated"] is None) == bool(turn["problem"]) for turn in turns)
    assert (end["steps"], end["num_judged"]) == (2, sum(not turn["problem"] for turn in turns))
    runs = json.loads(call(f"run list --json --store {store}").out)
    (run,) = [run for run in runs if run["opening"]["agent"] == "domain-try"]
    assert (run["simulator"], run["num_steps"]) == (start["simulator"], end["num_judged"])
    assert call(f"run verify {run['id']} --store {store}").code == 0


@pytest.mark.parametrize("page", pages.params(pages.STORE))
def test_a_page_shows_what_its_commands_print(history, tmp_path, page):
    shutil.copytree(history.store, tmp_path / pages.STORE)
    text = page.read_text()
    with pages.terminal(tmp_path) as terminal:
        assert pages.forms(terminal.play(text)) == pages.forms(text)
