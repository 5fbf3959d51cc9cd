import pytest

from agentworld_pipelines.job_status import (
    duration_text,
    first_problem,
    job_status,
    progress_of,
    refusal_of_pods,
)


def job(*conditions: tuple[str, str], **status: object) -> dict:
    told = [{"type": kind, "status": value, "reason": "Why"} for kind, value in conditions]
    return {"status": {"conditions": told, **status}}


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({}, "running"),
        (job(), "running"),
        (job(("Suspended", "True")), "waiting"),
        (job(("Suspended", "False")), "running"),
        (job(("Suspended", "False"), ("Complete", "True")), "complete"),
        (job(("Suspended", "False"), ("Failed", "True")), "failed"),
        (job(("Complete", "False"), ("Failed", "Unknown")), "running"),
    ],
)
def test_the_state_of_a_train_job_follows_from_its_conditions(told, state):
    assert job_status(told).state == state
    assert job_status(told).has_ended == (state in ("complete", "failed"))


def test_the_reason_of_a_job_includes_the_message_if_any():
    told = job(("Failed", "True"))
    assert job_status(told).reason == "Why"
    told["status"]["conditions"][0]["message"] = "because"
    assert job_status(told).reason == "Why: because"


def test_the_progress_that_the_trainer_reports_is_shown():
    assert progress_of({}) == ""
    told = job(trainerStatus={"progressPercentage": 40, "estimatedRemainingSeconds": 3900})
    assert progress_of(told) == "40 %, 1 h 5 min left"


@pytest.mark.parametrize(
    ("seconds", "words"), [(8.2, "8 s"), (89, "89 s"), (600, "10 min"), (7_260, "2 h 1 min")]
)
def test_a_duration_is_shown_in_rounded_units(seconds, words):
    assert duration_text(seconds) == words


def pod(name: str, state: dict, last: dict | None = None, **status: object) -> dict:
    container = {"state": state, "lastState": last or {}}
    return {"metadata": {"name": name}, "status": {"containerStatuses": [container], **status}}


def ended(reason: str, code: int, at: str = "") -> dict:
    return {"terminated": {"reason": reason, "exitCode": code, "finishedAt": at}}


def waiting(reason: str) -> dict:
    return {"waiting": {"reason": reason, "message": "said so"}}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/2 nodes are available",
}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (pod("a", {"running": {}}), ""),
        (pod("a", ended("Completed", 0)), ""),
        (pod("a", waiting("ContainerCreating")), ""),
        (pod("a", {"waiting": {}}), ""),
        (pod("a", ended("OOMKilled", 137)), "a: OOMKilled, exit code 137"),
        (pod("a", {"running": {}}, ended("Error", 2)), "a: Error, exit code 2"),
        (pod("a", waiting("ImagePullBackOff")), "a: ImagePullBackOff (said so)"),
        (pod("a", {}, reason="Evicted", message="disk"), "a: Evicted (disk)"),
        (
            pod("a", {}, conditions=[UNSCHEDULABLE]),
            "a: Unschedulable (0/2 nodes are available)",
        ),
        ({"metadata": {"name": "a"}}, ""),
    ],
)
def test_the_reason_why_a_pod_does_not_run_or_has_failed_is_reported(found, words):
    assert first_problem([found]) == words


def test_of_several_ended_pods_the_first_to_end_is_reported():
    later = pod("a", ended("Error", 143, "2026-01-01T00:00:09Z"))
    first = pod("b", ended("OOMKilled", 137, "2026-01-01T00:00:01Z"))
    stuck = pod("c", waiting("ImagePullBackOff"))
    assert first_problem([later, first, stuck]).startswith("b: OOMKilled")


MADE = {"metadata": {"name": "agentworld-rl-1", "creationTimestamp": "2026-01-01T00:00:00Z"}}


def event(name: str, second: int, message: str, year: int = 2026) -> dict:
    at = f"{year}-01-01T00:00:{second:02}Z"
    return {"involvedObject": {"name": name}, "lastTimestamp": at, "message": message}


def test_the_newest_event_of_a_job_is_reported_if_no_pod_can_be_created():
    own = [event("agentworld-rl-1-node-0", 1, "first"), event("agentworld-rl-1", 2, "quota")]
    others = [event("agentworld-sft-1", 9, "another"), event("agentworld-rl-1", 9, "old", 2025)]
    assert refusal_of_pods([*own, *others], MADE) == "agentworld-rl-1 can make no pod: quota"
    assert refusal_of_pods(others, MADE) == refusal_of_pods([], MADE) == ""
