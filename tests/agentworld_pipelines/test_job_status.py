import pytest

from agentworld_pipelines.job_status import (
    duration_text,
    first_problem,
    job_status,
    progress_of,
    refusal_of_pods,
)


def job(*conditions: tuple[str, str], **status: object) -> dict:
    records = [{"type": kind, "status": value, "reason": "Why"} for kind, value in conditions]
    return {"status": {"conditions": records, **status}}


@pytest.mark.parametrize(
    ("train_job", "state"),
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
def test_the_state_of_a_train_job_follows_from_its_conditions(train_job, state):
    assert job_status(train_job).state == state
    assert job_status(train_job).has_ended == (state in ("complete", "failed"))


def test_the_reason_of_a_job_includes_the_message_if_any():
    train_job = job(("Failed", "True"))
    assert job_status(train_job).reason == "Why"
    train_job["status"]["conditions"][0]["message"] = "because"
    assert job_status(train_job).reason == "Why: because"


def test_the_progress_that_the_trainer_reports_is_shown():
    assert progress_of({}) == ""
    train_job = job(trainerStatus={"progressPercentage": 40, "estimatedRemainingSeconds": 3900})
    assert progress_of(train_job) == "40 %, 1 h 5 min left"


@pytest.mark.parametrize(
    ("seconds", "words"), [(8.2, "8 s"), (89, "89 s"), (600, "10 min"), (7_260, "2 h 1 min")]
)
def test_a_duration_is_shown_in_rounded_units(seconds, words):
    assert duration_text(seconds) == words


def pod(name: str, state: dict, last_state: dict | None = None, **status: object) -> dict:
    container = {"state": state, "lastState": last_state or {}}
    return {"metadata": {"name": name}, "status": {"containerStatuses": [container], **status}}


def terminated(reason: str, code: int, at: str = "") -> dict:
    return {"terminated": {"reason": reason, "exitCode": code, "finishedAt": at}}


def waiting_state(reason: str) -> dict:
    return {"waiting": {"reason": reason, "message": "said so"}}


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/2 nodes are available",
}


@pytest.mark.parametrize(
    ("pod_object", "words"),
    [
        (pod("a", {"running": {}}), ""),
        (pod("a", terminated("Completed", 0)), ""),
        (pod("a", waiting_state("ContainerCreating")), ""),
        (pod("a", {"waiting": {}}), ""),
        (pod("a", terminated("OOMKilled", 137)), "a: OOMKilled, exit code 137"),
        (pod("a", {"running": {}}, terminated("Error", 2)), "a: Error, exit code 2"),
        (pod("a", waiting_state("ImagePullBackOff")), "a: ImagePullBackOff (said so)"),
        (pod("a", {}, reason="Evicted", message="disk"), "a: Evicted (disk)"),
        (
            pod("a", {}, conditions=[UNSCHEDULABLE]),
            "a: Unschedulable (0/2 nodes are available)",
        ),
        ({"metadata": {"name": "a"}}, ""),
    ],
)
def test_the_reason_why_a_pod_does_not_run_or_has_failed_is_reported(pod_object, words):
    assert first_problem([pod_object]) == words


def test_of_several_ended_pods_the_first_to_end_is_reported():
    second = pod("a", terminated("Error", 143, "2026-01-01T00:00:09Z"))
    first = pod("b", terminated("OOMKilled", 137, "2026-01-01T00:00:01Z"))
    third = pod("c", waiting_state("ImagePullBackOff"))
    assert first_problem([second, first, third]).startswith("b: OOMKilled")


JOB = {"metadata": {"name": "agentworld-rl-1", "creationTimestamp": "2026-01-01T00:00:00Z"}}


def event(name: str, second: int, message: str, year: int = 2026) -> dict:
    at = f"{year}-01-01T00:00:{second:02}Z"
    return {"involvedObject": {"name": name}, "lastTimestamp": at, "message": message}


def test_the_newest_event_of_a_job_is_reported_if_no_pod_can_be_created():
    events = [event("agentworld-rl-1-node-0", 1, "first"), event("agentworld-rl-1", 2, "quota")]
    noise = [event("agentworld-sft-1", 9, "another"), event("agentworld-rl-1", 9, "old", 2025)]
    assert refusal_of_pods([*events, *noise], JOB) == "agentworld-rl-1 can make no pod: quota"
    assert refusal_of_pods(noise, JOB) == refusal_of_pods([], JOB) == ""
