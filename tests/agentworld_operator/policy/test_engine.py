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
    state = observe_engine(deployment(), [pod(verifier=ended(0), engine={"running": {}})])
    assert state.verified
    assert state.problem is None


def test_wrong_weights_are_reported_with_the_verifiers_message():
    message = "/weights/model.safetensors does not match the manifest"
    assert problem(pod(verifier=ended(2, message))) == Problem("VerificationFailed", message)


def test_a_verifier_waiting_for_a_restart_still_reports_its_last_failure():
    restarting_pod = pod(verifier=waiting("CrashLoopBackOff"))
    restarting_pod["status"]["initContainerStatuses"][0]["lastState"] = ended(2, "other files")
    assert problem(restarting_pod) == Problem("VerificationFailed", "other files")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (ended(1, "s3://models does not answer"), "s3://models does not answer"),
        (ended(137), "the verifier of the weights ended with status 137"),
    ],
)
def test_a_verifier_that_ended_without_a_result_says_nothing_against_the_weights(state, message):
    assert problem(pod(verifier=state)) == Problem("VerifierEnded", message)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (waiting("ImagePullBackOff", "no such image"), "ImagePullBackOff"),
        (waiting("CreateContainerConfigError", "no claim"), "CreateContainerConfigError"),
        (ended(1, "out of memory"), "EngineEnded"),
    ],
)
def test_an_engine_that_cannot_start_has_a_reason_and_a_message(state, reason):
    engine_problem = problem(pod(verifier=ended(0), engine=state))
    assert engine_problem is not None
    assert engine_problem.reason == reason
    assert engine_problem.message


def test_a_restarted_ready_engine_has_no_problem():
    restarted_pod = pod(verifier=ended(0), engine={"running": {}}, last=ended(137), ready=True)
    assert problem(restarted_pod) is None


def test_an_unschedulable_pod_is_a_problem():
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "full",
    }
    assert problem(pod(conditions=[condition])) == Problem("Unschedulable", "full")


def test_the_failure_of_a_terminating_pod_is_ignored():
    terminating_pod = pod(verifier=ended(2, "other files"))
    terminating_pod["metadata"]["deletionTimestamp"] = "now"
    assert problem(terminating_pod) is None


def test_wrong_weights_take_precedence_in_any_order_of_pods():
    failed_pod, pulling_pod = (
        pod(verifier=ended(2, "other files")),
        pod(engine=waiting("ErrImagePull")),
    )
    assert (
        problem(failed_pod, pulling_pod)
        == problem(pulling_pod, failed_pod)
        == Problem("VerificationFailed", "other files")
    )


def test_an_exceeded_quota_is_reported_from_the_deployment():
    condition = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
    blocked_deployment = deployment(conditions=[condition])
    assert observe_engine(blocked_deployment, []).problem == Problem(
        "FailedCreate", "exceeded quota"
    )
    recovered_deployment = deployment(conditions=[condition | {"status": "False"}])
    assert observe_engine(recovered_deployment, []).problem is None


def test_a_progress_timeout_is_reported_unless_a_pod_has_a_reason():
    condition = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    late_deployment = deployment(conditions=[condition | {"message": "timed out"}])
    assert observe_engine(late_deployment, []).problem == Problem(
        "ProgressDeadlineExceeded", "timed out"
    )
    pulling_pod = pod(engine=waiting("ErrImagePull", "no such image"))
    assert observe_engine(late_deployment, [pulling_pod]).problem == Problem(
        "ErrImagePull", "no such image"
    )


def test_a_pod_not_admitted_by_its_queue_is_a_problem():
    condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    assert problem(pod(conditions=[condition | {"message": "held"}])) == Problem(
        "SchedulingGated", "held"
    )


def test_an_evicted_pod_is_a_problem_until_another_pod_is_ready():
    evicted_pod = pod(phase="Failed", reason="Evicted", message="low on memory", engine=ended(137))
    eviction = Problem("PodFailed", "Evicted: low on memory")
    assert observe_engine(deployment(replicas=1, ready=0), [evicted_pod]).problem == eviction
    assert observe_engine(deployment(replicas=1, ready=1), [evicted_pod]).problem is None
