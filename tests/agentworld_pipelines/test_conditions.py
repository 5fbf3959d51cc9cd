"""The inputs of a pipeline's conditions: `kfp.local` runs them as code (GHSA-rhjm-6347-5x33)."""

import re
from typing import get_args

import pytest
from kfp.local import io
from kfp.local.orchestrator.enhanced_dag_orchestrator import ConditionEvaluator

import make.pipelines
from agentworld.errors import InputError
from agentworld.records.gate import GateVerdict
from agentworld.runner.folders import VERDICT
from agentworld.steps.run import folder_for
from agentworld_pipelines.compile import PIPELINES
from agentworld_pipelines.stages import decide
from make import job, records

pytestmark = pytest.mark.compute

LITERALS = get_args(GateVerdict.model_fields["verdict"].annotation)
CODE = "x' or True or 'x"
_CONDITION = r"inputs\.parameter_values\['pipelinechannel--gate-Output'\] == '(.+)'"


def conditions(name: str) -> list[str]:
    policies = (
        task.get("triggerPolicy", {}) for task in make.pipelines.compiled(name).tasks.values()
    )
    return [policy["condition"] for policy in policies if "condition" in policy]


def local_runner_continues(verdict: str) -> bool:
    outputs = io.IOStore()
    outputs.put_task_output("gate", "Output", verdict)
    (condition,) = conditions("world_model")
    return bool(ConditionEvaluator.evaluate_condition(condition, outputs))


def test_the_gates_verdict_is_the_only_output_that_a_condition_reads():
    by_pipeline = {name: conditions(name) for name in PIPELINES}
    assert [name for name in by_pipeline if by_pipeline[name]] == ["world_model"]
    for condition in by_pipeline["world_model"]:
        match = re.fullmatch(_CONDITION, condition)
        assert match
        assert match[1] in LITERALS


def test_the_verdict_is_one_of_two_values_without_code():
    assert [local_runner_continues(literal) for literal in LITERALS] == [True, False]
    assert all(re.fullmatch("[a-z]+", literal) for literal in LITERALS)


def test_the_local_runner_of_this_kfp_runs_code_in_a_verdict():
    """If this fails, kfp has a fix: remove this test and the sentence in the guide `cluster.md`."""
    assert local_runner_continues(CODE)


def test_a_verdict_with_code_is_refused_before_kubeflow_gets_the_verdict(tmp_path):
    report = records.finished_step(tmp_path, "evaluate", records.digest("evaluate"))
    folder = folder_for("gate", "smoke", str(tmp_path), str(report))
    verdict = job.verdict().model_dump(mode="json")
    records.receipt("gate", records.digest("gate")).write(folder / "receipt.json")
    (folder / VERDICT).write_text(job.verdict().canonical.decode().replace("passed", CODE))
    assert verdict["verdict"] == "passed"
    with pytest.raises(InputError, match=r"verdict\.json is no GateVerdict: .*verdict"):
        decide("smoke", str(tmp_path), str(report))
