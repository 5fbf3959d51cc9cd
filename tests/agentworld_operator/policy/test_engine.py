import pytest

from agentworld_operator.policy.engine import EngineState, observe_engine
from agentworld_operator.policy.problem import Problem
from make.simulator import deployment, ended, pod, waiting


def problem(*pods):
    return observe_engine(deployment(), pods).problem


def test_no_deployment_is_no_engine():
    assert observe_engine(None, []) == EngineState()


def test_a_deployment_tells_how_many_are_ready():
    assert observe_engine(deployment(replicas=3, ready=2), []) == EngineState(3, 2)


def test_a_pod_whose_verifier_ended_well_has_verified_weights():
    seen = observe_engine(deployment(), [pod(verifier=ended(0), engine={"running": {}})])
    assert seen.verified
    assert seen.problem is None


def test_wrong_weights_are_told_in_the_verifiers_own_words():
    words = "/weights/model.safetensors does not match the manifest"
    assert problem(pod(verifier=ended(2, words))) == Problem("VerificationFailed", words)


def test_a_verifier_that_waits_to_be_started_again_still_tells_what_it_found():
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
def test_an_engine_that_cannot_start_says_why(state, reason):
    found = problem(pod(verifier=ended(0), engine=state))
    assert found is not None
    assert found.reason == reason
    assert found.message


def test_an_engine_that_came_back_is_in_no_trouble():
    back = pod(verifier=ended(0), engine={"running": {}}, last=ended(137), ready=True)
    assert problem(back) is None


def test_a_pod_without_a_node_is_told():
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}
    assert problem(pod(conditions=[told])) == Problem("Unschedulable", "full")


def test_a_pod_that_is_on_its_way_out_says_nothing():
    going = pod(verifier=ended(2, "other files"))
    going["metadata"]["deletionTimestamp"] = "now"
    assert problem(going) is None


def test_wrong_weights_are_told_before_all_else_in_whichever_order_pods_come():
    wrong, full = pod(verifier=ended(2, "other files")), pod(engine=waiting("ErrImagePull"))
    assert (
        problem(wrong, full) == problem(full, wrong) == Problem("VerificationFailed", "other files")
    )


def test_a_quota_that_lets_no_pod_be_made_is_told_by_the_deployment():
    refused = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
    found = deployment(conditions=[refused])
    assert observe_engine(found, []).problem == Problem("FailedCreate", "exceeded quota")
    over = deployment(conditions=[refused | {"status": "False"}])
    assert observe_engine(over, []).problem is None


def test_what_takes_too_long_says_so_unless_a_pod_knows_why():
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    found = deployment(conditions=[late | {"message": "timed out"}])
    assert observe_engine(found, []).problem == Problem("ProgressDeadlineExceeded", "timed out")
    pulling = pod(engine=waiting("ErrImagePull", "no such image"))
    assert observe_engine(found, [pulling]).problem == Problem("ErrImagePull", "no such image")


def test_a_pod_that_its_queue_has_not_admitted_says_so():
    told = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
    assert problem(pod(conditions=[told | {"message": "held"}])) == Problem(
        "SchedulingGated", "held"
    )


def test_a_pod_that_its_node_gave_up_is_told_until_another_one_is_ready():
    evicted = pod(phase="Failed", reason="Evicted", message="low on memory", engine=ended(137))
    told = Problem("PodFailed", "Evicted: low on memory")
    assert observe_engine(deployment(replicas=1, ready=0), [evicted]).problem == told
    assert observe_engine(deployment(replicas=1, ready=1), [evicted]).problem is None
