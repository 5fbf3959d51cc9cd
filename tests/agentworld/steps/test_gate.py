import json
from pathlib import Path

import pytest

from agentworld.errors import InputError
from agentworld.records.gate import GateResult, GateVerdict
from agentworld.records.report import WorldModelReport
from agentworld.runner.folders import REPORT
from agentworld.runner.progress import read_progress
from agentworld.runner.step import output_of
from agentworld_pipelines.stages import Verdict, decide
from make import records


def finish_evaluation(store: Path, report: WorldModelReport) -> str:
    """The folder of a finished evaluation."""
    folder = records.finished_step(store, "evaluate", report.digest)
    report.write(folder / REPORT)
    return str(folder)


def judge(store: Path, report: WorldModelReport | None = None, **bounds: float) -> Verdict:
    """The result of a gate with these minimums for RL's checkpoint."""
    gate = [{"metric": f"rl.{measure}", "least": value} for measure, value in bounds.items()]
    recipe = store / "mine.yaml"
    recipe.write_text(json.dumps({"name": "mine", "gate": gate}))
    evaluation = finish_evaluation(store, report or records.world_report())
    return decide(str(recipe), str(store), evaluation)


def state(store: Path) -> str | None:
    progress = read_progress(store, "gate")
    return progress.state if progress else None


def test_a_recipe_without_a_gate_passes(tmp_path):
    assert judge(tmp_path)[1:] == ("passed", "")


def test_a_metric_equal_to_its_minimum_passes(tmp_path):
    report = records.world_report(stages={"rl": records.world_score(0.5)})
    assert judge(tmp_path, report, exact_match=0.5).verdict == "passed"


def test_a_gate_compares_the_mean_and_not_the_confidence_interval(tmp_path):
    score = records.world_report().stages["rl"].exact_match
    assert score.low < 0.8 < score.mean < 0.85 < score.high
    assert judge(tmp_path, exact_match=0.8).verdict == "passed"
    assert judge(tmp_path, exact_match=0.85).verdict == "refused"


def test_a_refusal_names_every_failed_metric_and_finishes_the_step(tmp_path):
    result = judge(tmp_path, exact_match=0.9, rule=0.5, **{"by_tag.unseen": 0.75})
    assert result[1:] == (
        "refused",
        "rl.exact_match is 0.82, which is under 0.9; rl.by_tag.unseen is 0.72, which is under 0.75",
    )
    assert state(tmp_path) == "finished"


def test_the_verdict_contains_gate_values_and_report_and_is_the_step_output(tmp_path):
    result = judge(tmp_path, exact_match=0.9)
    verdict = GateVerdict.read(Path(result.folder) / "verdict.json")
    assert verdict.gate == (GateResult(metric="rl.exact_match", least=0.9, value=0.82),)
    assert verdict.report == records.world_report().digest
    assert (verdict.verdict, verdict.reason) == result[1:]
    assert output_of(result.folder) == verdict.digest


@pytest.mark.parametrize("metric", ["exactmatch", "free_running"])
def test_the_error_for_an_unknown_metric_lists_the_known_metrics(tmp_path, metric):
    with pytest.raises(InputError) as caught:
        judge(tmp_path, exact_match=0.1, **{metric: 0.5})
    progress = read_progress(tmp_path, "gate")
    assert progress
    assert (progress.state, progress.sentence) == ("failed", str(caught.value))
    assert progress.sentence == (
        f"the recipe's gate asks for 'rl.{metric}', which the report does not have; join one of"
        " cpt, sft, rl, baseline.copy, baseline.nearest and one of exact_match, rule,"
        " by_tag.cat, by_tag.history, by_tag.ls, by_tag.unseen by a dot"
    )


def test_the_same_report_is_judged_once(tmp_path):
    assert judge(tmp_path, rule=0.5) == judge(tmp_path, rule=0.5)
    assert state(tmp_path) == "reused"


def test_a_repeated_refusal_reuses_the_verdict(tmp_path):
    assert judge(tmp_path, rule=0.99) == judge(tmp_path, rule=0.99)
    assert state(tmp_path) == "reused"


def test_another_gate_or_report_is_judged_again(tmp_path):
    other = records.world_report(data=records.digest("other"))
    runs = [judge(tmp_path, rule=0.99), judge(tmp_path, rule=0.5), judge(tmp_path, other, rule=0.5)]
    assert [run.verdict for run in runs] == ["refused", "passed", "passed"]
    assert len({run.folder for run in runs}) == 3
