import json
from pathlib import Path

import pytest

from agentworld.errors import Conflict, InputError
from agentworld.operations.simulators import alias_history, attach, set_alias
from agentworld.records.gate import Gate, GateResult
from agentworld.records.report import Report
from agentworld.runner.progress import read_progress
from agentworld.runner.step import output_of
from agentworld.steps.deploy import DeployResult
from agentworld.steps.run import run_by_name as run_step
from agentworld.storage.simulators import PinnedSimulator
from make import records


def new_simulator(store: Path, report: Report | None = None, **fields: object) -> PinnedSimulator:
    """A simulator of the weights of the stage rl, with an evaluation."""
    simulator = records.pinned(store, **fields)
    artifacts = {"rl": simulator.manifest.artifact, "sft": records.digest("artifact of sft")}
    attach(simulator, report or records.world_report(artifacts=artifacts), store)
    return simulator


def run(store: Path, simulator: PinnedSimulator, alias: str = "terminal", **bounds: float) -> str:
    """The folder of the step under a recipe with this gate."""
    gate = [{"metric": metric.replace("__", "."), "least": bounds[metric]} for metric in bounds]
    recipe = store / "mine.yaml"
    recipe.write_text(json.dumps({"name": "mine", "gate": gate, "deploy": {"alias": alias}}))
    return run_step("deploy", str(recipe), str(store), str(simulator.folder))


def test_a_deployment_moves_the_alias_and_records_the_gate_result(tmp_path):
    simulator = new_simulator(tmp_path)
    folder = run(tmp_path, simulator, rl__exact_match=0.8)
    (change,) = alias_history(tmp_path, "terminal")
    assert (change.simulator, change.set_by) == (simulator.digest, "pipeline")
    assert change.gate == (GateResult(metric="exact_match", least=0.8, value=0.82),)
    result = DeployResult.read(Path(folder) / "deployed.json")
    assert (result.alias, result.simulator, result.report) == (
        "terminal",
        simulator.digest,
        change.report,
    )
    assert output_of(folder) == result.digest


def test_only_gate_metrics_of_the_stage_that_made_the_weights_apply(tmp_path):
    simulator = new_simulator(tmp_path)
    bounds = {"rl__rule": 0.5, "sft__exact_match": 0.99, "baseline__copy__rule": 0.99}
    result = DeployResult.read(Path(run(tmp_path, simulator, **bounds)) / "deployed.json")
    assert result.gate == (Gate(metric="rule", least=0.5),)


@pytest.mark.compute
def test_a_failed_gate_does_not_move_the_alias(tmp_path):
    before = new_simulator(tmp_path)
    run(tmp_path, before, rl__exact_match=0.8)
    with pytest.raises(Conflict, match=r"exact_match is 0\.82 in the report"):
        run(tmp_path, new_simulator(tmp_path, context_tokens=512), rl__exact_match=0.9)
    assert [change.simulator for change in alias_history(tmp_path)] == [before.digest]


def test_a_gate_without_an_evaluation_refuses_the_deployment(tmp_path):
    with pytest.raises(InputError, match="no evaluation of sha256:"):
        run(tmp_path, records.pinned(tmp_path), rl__exact_match=0.8)
    assert alias_history(tmp_path) == []


def test_without_a_gate_no_evaluation_is_required(tmp_path):
    simulator = records.pinned(tmp_path)
    run(tmp_path, simulator)
    (change,) = alias_history(tmp_path)
    assert (change.simulator, change.report) == (simulator.digest, None)


def test_the_last_attached_evaluation_of_the_world_model_is_used(tmp_path):
    simulator = new_simulator(tmp_path)
    report = records.world_report(
        data=records.digest("newer"), artifacts={"rl": simulator.manifest.artifact}
    )
    attach(simulator, report, tmp_path)
    attach(simulator, records.agent_report(simulator=simulator.digest), tmp_path)
    result = DeployResult.read(Path(run(tmp_path, simulator)) / "deployed.json")
    assert result.report == report.digest


def test_an_evaluation_of_the_simulator_itself_can_pass_the_gate(tmp_path):
    simulator = records.pinned(tmp_path)
    attach(simulator, records.world_report(artifacts={"rl": simulator.digest}), tmp_path)
    run(tmp_path, simulator, rl__exact_match=0.8)
    assert alias_history(tmp_path)[0].simulator == simulator.digest


@pytest.mark.compute
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_repeated_step_does_not_move_an_alias_back(tmp_path, is_killed):
    simulator, other = new_simulator(tmp_path), records.pinned(tmp_path, context_tokens=512)
    folder = run(tmp_path, simulator, rl__exact_match=0.8)
    set_alias("terminal", other.digest, tmp_path, "ada")
    if is_killed:  # after moving the alias, before writing the receipt
        (Path(folder) / "receipt.json").unlink()
    assert run(tmp_path, simulator, rl__exact_match=0.8) == folder
    assert [change.set_by for change in alias_history(tmp_path)] == ["pipeline", "ada"]
    progress = read_progress(tmp_path, "deploy")
    assert progress
    assert progress.state == ("finished" if is_killed else "reused")


@pytest.mark.compute
def test_another_alias_or_gate_is_another_step(tmp_path):
    simulator = new_simulator(tmp_path)
    folders = {
        run(tmp_path, simulator),
        run(tmp_path, simulator, alias="shell"),
        run(tmp_path, simulator, rl__rule=0.5),
    }
    assert len(folders) == 3
    assert [change.alias for change in alias_history(tmp_path)] == ["terminal", "shell", "terminal"]
