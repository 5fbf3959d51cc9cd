"""The import of a store: live episodes are imported, and simulated episodes never are."""

import json

import pytest

import make.agent
from agentworld.audit.export.logs import export_run
from agentworld.data.imported import QUARANTINE, import_trajectories
from agentworld.data.importers.base import form_of
from agentworld.errors import InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.records.base import digest_file
from agentworld.records.progress import ignore_progress
from agentworld.storage.receipts import RECEIPT
from agentworld.storage.source import digest_of, files_of
from agentworld.storage.trajectories import read_collected, read_trajectories, write_trajectories
from make import logs, records

LIVE = "trained-live.jsonl"
EPISODES = [records.trajectory(seed=seed, held_out=True) for seed in range(3)]


@pytest.fixture
def agent(tmp_path):
    return make.agent.registered(tmp_path / "store")


def validate(agent, *, signed=True):
    """Records a validation with live episodes in its folder, and returns the folder."""
    source = agent.store / "live.jsonl"
    write_trajectories(source, EPISODES)
    files = {LIVE: digest_file(source)}
    folder = agent.validated(agent.simulator.digest, signed=signed, live_episodes=files)
    source.rename(folder / LIVE)
    return folder


def run_import(source, out, **fields):
    recipe = CollectRecipe(trajectories=str(source), **fields)
    import_trajectories(recipe, digest_of(str(source)), out, ignore_progress)
    lines = (out / QUARANTINE).read_text().splitlines()
    return list(read_trajectories(out)), [json.loads(line) for line in lines]


@pytest.mark.compute
def test_live_episodes_are_imported_and_simulated_runs_are_not(agent, tmp_path):
    validate(agent)
    trajectories, (rejection,) = run_import(f"ledger:{agent.store}", tmp_path / "out")
    assert trajectories == EPISODES
    run, simulator = agent.agent.run, agent.simulator.digest
    assert rejection["place"] == f"run {run}"
    assert rejection["problem"].startswith(f"its 1 episodes were answered by {simulator}: ")
    collection = read_collected(tmp_path / "out")
    assert collection.form == "ledger"
    assert collection.notes["episode that a simulator answered"] == 1


@pytest.mark.compute
def test_live_episodes_of_an_unsigned_validation_are_imported_and_counted(agent, tmp_path):
    validate(agent, signed=False)
    trajectories, _ = run_import(f"ledger:{agent.store}", tmp_path / "out")
    assert trajectories == EPISODES
    notes = read_collected(tmp_path / "out").notes
    assert notes["live episode of a validation that nobody signed"] == 3


def change_an_episode(folder, _agent):
    changed_episode = EPISODES[0].model_copy(update={"seed": 99})
    write_trajectories(folder / LIVE, [changed_episode, *EPISODES[1:]])
    return "it is not the file of the report"


def take_the_file_away(folder, _agent):
    (folder / LIVE).unlink()
    return "it is not the file of the report"


def change_the_report(folder, agent):
    report = records.agent_report(simulator=agent.simulator.digest, live_steps=1)
    report.write(folder / "report.json")
    return "was changed; restore it"


def change_report_and_receipt(folder, agent):
    """Changes the report and its receipt, as a writer without a key could."""
    change_an_episode(folder, agent)
    files = {LIVE: digest_file(folder / LIVE)}
    report = records.agent_report(simulator=agent.simulator.digest, live_episodes=files)
    report.write(folder / "report.json")
    receipt = json.loads((folder / RECEIPT).read_text())
    (folder / RECEIPT).write_text(json.dumps({**receipt, "output": report.digest}))
    return "is not the one of"


@pytest.mark.compute
@pytest.mark.parametrize(
    "change",
    [change_an_episode, take_the_file_away, change_the_report, change_report_and_receipt],
)
def test_a_validation_with_changed_or_missing_files_is_refused_and_named(agent, tmp_path, change):
    folder = validate(agent)
    problem = change(folder, agent)
    with pytest.raises(InputError, match="has no episode of the form ledger"):
        run_import(f"ledger:{agent.store}", tmp_path / "out")
    lines = (tmp_path / "out" / QUARANTINE).read_text().splitlines()
    (rejection, _) = map(json.loads, lines)
    assert rejection["place"].startswith(f"validation {folder.name}")
    assert problem in rejection["problem"]


@pytest.mark.compute
def test_a_validation_that_names_no_live_episode_files_is_refused(agent, tmp_path):
    agent.validated(agent.simulator.digest)
    with pytest.raises(InputError, match="names no file of live episodes"):
        run_import(f"ledger:{agent.store}", tmp_path / "out")


def test_the_episodes_of_an_exported_run_are_refused(agent, tmp_path):
    export_run(agent.agent.run, agent.ledger, tmp_path / "run", None)
    with pytest.raises(InputError, match=r"is transitions\.parquet run .* episode .* answered by"):
        run_import(tmp_path / "run", tmp_path / "out")


def test_an_exported_run_is_refused_as_a_table_of_steps(agent, tmp_path):
    export_run(agent.agent.run, agent.ledger, tmp_path / "run", None)
    options = {
        "action": "action",
        "observation": "observation",
        "episode": "episode",
        "alignment": "same row",
    }
    with pytest.raises(InputError, match="a cell is bytes and no text"):
        run_import(tmp_path / "run", tmp_path / "out", format="steps", options=options)


def test_a_folder_that_is_no_store_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not a store"):
        digest_of(f"ledger:{tmp_path}")


def test_the_ledger_format_is_detected_by_address_and_invalid_rows_are_problems(agent, tmp_path):
    validate(agent)
    assert form_of(files_of(f"ledger:{agent.store}")) == "ledger"
    rows = ["{", {"kind": "ledger"}, {"kind": "ledger", "place": "run 1"}]
    results = logs.read("ledger", tmp_path, *rows)
    assert [result.trajectory for result in results] == [None] * 3
    assert logs.none_is_lost(results)
