import pytest

from agentworld_operator.policy.engine import EngineState, observe_engine
from agentworld_operator.policy.problem import Problem
from make.simulator import deployment, ended, pod, waiting


def problem(*pods):
    return observe_engine(deployment(), pods).problem


def test_without_a_deployment_the_engine_state_is_empty():
    assert observe_engine(None, []) == EngineState()


def test_the_engine_state_counts_ready_replicas():
    assert observe_engine(deployment(replicas=3, ready=2), []) == EngineState(3, 2)


def test_a_pod_whose_verifier_succeeded_has_verified_weights():
    seen = observe_engine(deployment(), [pod(verifier=ended(0), engine={"running": {}})])
    assert seen.verified
    assert seen.problem is None


def test_wrong_weights_are_reported_with_the_verifiers_message():
    words = "/weights/model.safetensors does not match the manifest"
    assert problem(pod(verifier=ended(2, words))) == Problem("VerificationFailed", words)


def test_a_verifier_waiting_for_a_restart_still_reports_its_last_failure():
    again = pod(verifier=waiting("CrashLoopBackOff"))
    again["status"]["initContainerStatuses"][0]["lastState"] = ended(2, "other files")
    assert problem(again) == Problem("VerificationFailed", "other files")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (waiting("ImagePullBackOff", "no such image"), "ImagePullBackOff"),
        (waiting("CreateContainerConfigError", "no claim"), "CreateContainerConfigError"),
        (ended(1, "out of memory"), "EngineEnded"),
    ],
)
def test_an_engine_that_cannot_start_has_a_reason_and_a_message(state, reason):
    found = problem(pod(verifier=ended(0), engine=state))
    assert found is not None
    assert found.reason == reason
    assert found.message


def test_a_restarted_ready_engine_has_no_problem():
    back = pod(verifier=ended(0), engine={"running": {}}, last=ended(137), ready=True)
    assert problem(back) is None


def test_an_unschedulable_pod_is_a_problem():
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}
    assert problem(pod(conditions=[told])) == Problem("Unschedulable", "full")


def test_the_failure_of_a_terminating_pod_is_ignored():
    going = pod(verifier=ended(2, "other files"))
    going["metadata"]["deletionTimestamp"] = "now"
    assert problem(going) is None


def test_wrong_weights_take_precedence_in_any_order_of_pods():
    wrong, full = pod(verifier=ended(2, "other files")), pod(engine=waiting("ErrImagePull"))
    assert (
        problem(wrong, full) == problem(full, wrong) == Problem("VerificationFailed", "other files")
    )


def test_an_exceeded_quota_is_reported_from_the_deployment():
    refused = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
    found = deployment(conditions=[refused])
    assert observe_engine(found, []).problem == Problem("FailedCreate", "exceeded quota")
    over = deployment(conditions=[refused | {"status": "False"}])
    assert observe_engine(over, []).problem is None


def test_a_progress_timeout_is_reported_unless_a_pod_has_a_reason():
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    found = deployment(conditions=[late | {"message": "timed out"}])
    assert observe_engine(found, []).problem == Problem("ProgressDeadlineExceeded", "timed out")
    pulling = pod(engine=waiting("ErrImagePull", "no such image"))
    assert observe_engine(found, [pulling]).problem == Problem("ErrImagePull", "no such image")


def test_a_pod_not_admitted_by_its_queue_is_a_problem():
    told = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    assert problem(pod(conditions=[told | {"message": "held"}])) == Problem(
        "SchedulingGated", "held"
    )


def test_an_evicted_pod_is_a_problem_until_another_pod_is_ready():
    evicted = pod(phase="Failed", reason="Evicted", message="low on memory", engine=ended(137))
    told = Problem("PodFailed", "Evicted: low on memory")
    assert observe_engine(deployment(replicas=1, ready=0), [evicted]).problem == told
    assert observe_engine(deployment(replicas=1, ready=1), [evicted]).problem is None
