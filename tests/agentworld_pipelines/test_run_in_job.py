"""Jobs of a real API server do steps of live shells whose own pods can have no sandbox."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agentworld.runner.lock import hold
from agentworld.runner.progress import ProgressFile, read_progress
from agentworld.steps.run import folder_for
from agentworld_pipelines.placement import Place
from agentworld_pipelines.step_job import step_job
from fakes import trainer as trainers
from fakes.batch_jobs import Jobs
from fakes.trainer import Kubelet
from machines.control_plane import ControlPlane
from machines.step_process import StepProcess, run_collection
from make import records
from make.bounds import set_quota
from make.operator import Namespace
from make.places import PLACE
from waiting import wait_for

pytestmark = pytest.mark.waits

STORE_PLACE = Place(image="mirror.example/agentworld:7", volumes={"agentworld-stores": "/stores"})


class Step(StepProcess):
    """The step `collect` in a pod without a sandbox."""

    def __init__(self, store: Path, environment: dict[str, str], place: Place | None) -> None:
        place_json = place.model_dump_json(exclude_defaults=True) if place else ""
        environment = {**environment, "PATH": str(store / "no-programs")}
        super().__init__(store, environment, run_collection, "demo", str(store), place_json)

    @property
    def folder(self) -> Path:
        return folder_for("collect", "demo", str(self.store))

    def finish(self) -> None:
        """Ends the step as the Job's pod does."""
        records.receipt("collect", records.digest("made")).write(self.folder / "receipt.json")


@pytest.fixture
def jobs(control_plane: ControlPlane, kubelet: Kubelet, account: tuple[str, Path]) -> Jobs:
    return Jobs(control_plane, kubelet, account[0])


@pytest.fixture
def start(start_step: Callable[..., Step]) -> Callable[..., Step]:
    return lambda place=STORE_PLACE, **settings: start_step(Step, place, **settings)


def is_kept(expected: object, actual: object) -> bool:
    """Whether the actual object has all expected fields; a server may have added others."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return all(is_kept(value, actual.get(name)) for name, value in expected.items())
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(is_kept, expected, actual))
    return expected == actual


def test_the_api_server_keeps_every_field_of_a_new_job(jobs, start):
    place = PLACE.model_copy(update={"nodes": None})
    step = start(place)
    step.says("this pod can have no sandbox for collect; a Job of its own does it")
    job = jobs.one()
    manifest = step_job(job["metadata"]["name"], "collect", ["demo", str(step.store)], place)
    assert manifest["spec"].pop("ttlSecondsAfterFinished")  # unknown to 1.20, which drops it
    assert all(is_kept(manifest[part], job[part]) for part in ("metadata", "spec"))
    assert "ownerReferences" not in job["metadata"]


def test_a_step_is_followed_from_its_job_to_its_folder(jobs, start):
    step = start()
    pod = jobs.run()
    jobs.kubelet.say(pod, "the first words")
    step.says("the first words")
    ProgressFile(step.store, "collect").update(3, 10)
    step.says("collect: 3 of 10")
    step.finish()
    jobs.complete(pod)
    assert step.ends() == 0
    assert "is complete" in step.said
    assert step.said.endswith(f"made {step.folder}\n")
    assert len(jobs.all()) == 1
    progress = read_progress(step.store, "collect")
    assert progress
    assert (progress.state, progress.folder) == ("reused", str(step.folder))


def test_a_step_is_running_while_its_job_waits(jobs, start):
    step = start()
    jobs.one()
    step.says("is running")
    progress = read_progress(step.store, "collect")
    assert progress
    assert (progress.state, progress.sentence) == ("running", "")


@pytest.mark.parametrize("end", [Step.kill, Step.terminate], ids=["killed", "preempted"])
def test_a_new_follower_continues_with_the_job_of_an_ended_follower(jobs, start, end):
    first = start()
    first.says("is made")
    uid, pod = jobs.one()["metadata"]["uid"], jobs.run()
    end(first)
    assert first.ends() < 0
    lock_path = first.folder.with_name(first.folder.name + ".lock")
    with hold(lock_path, "held already"):  # as by the Job's own process during its work
        second = start()
        second.says("is there already")
        assert jobs.one()["metadata"]["uid"] == uid
    second.finish()
    jobs.complete(pod)
    assert second.ends() == 0


def test_the_error_of_a_failed_step_contains_every_reported_reason(jobs, start):
    step = start()
    pod = jobs.run()
    ProgressFile(step.store, "collect").fail("StoreError", "the disk is full; free space")
    jobs.fail(pod, reason="Error", exitCode=2)
    assert step.ends() == 1
    (error,) = [line for line in step.said.splitlines() if "PipelineError" in line]
    assert "the Job agentworld-collect-" in error
    assert "failed (BackoffLimitExceeded: " in error
    assert f"{pod}: Error, exit code 2" in error
    assert "collect says: the disk is full; free space" in error
    assert "run the step again" in error


def test_the_reason_is_reported_if_a_job_can_create_no_pod(control_plane, jobs, start):
    set_quota(Namespace(control_plane.client, jobs.namespace), {"pods": "0"})
    step = start()
    step.says("exceeded quota: team")
    name = jobs.one()["metadata"]["name"]
    assert f"{name} can make no pod: Error creating: pods " in step.said


def test_no_retry_is_advised_if_the_jobs_pod_can_have_no_sandbox_either(jobs, start):
    step = start()
    pod = jobs.run()
    ProgressFile(step.store, "collect").fail("EnvironmentUnavailable", "no sandbox: it failed")
    jobs.fail(pod, reason="Error", exitCode=2)
    assert step.ends() == 1
    assert "collect says: no sandbox: it failed; no retry helps before that is" in step.said


def test_a_failed_job_is_replaced_when_the_step_is_started_again(jobs, start):
    step = start()
    failed_uid, pod = jobs.one()["metadata"]["uid"], jobs.run()
    jobs.fail(pod, reason="OOMKilled", exitCode=137)
    assert step.ends() == 1
    second = start()
    second.says("is made")
    assert jobs.one()["metadata"]["uid"] != failed_uid
    second.finish()
    jobs.complete(jobs.run())
    assert second.ends() == 0


def test_a_failed_job_is_replaced_by_a_retry_of_the_steps_own_process(jobs, start):
    step = start(retries='{"times": 1, "wait_seconds": 0}')
    failed_uid, pod = jobs.one()["metadata"]["uid"], jobs.run()
    jobs.fail(pod, reason="OOMKilled", exitCode=137)
    step.says("retry 1 of 1 in 0 s")
    wait_for(lambda: [job["metadata"]["uid"] for job in jobs.all()] not in ([], [failed_uid]))
    step.finish()
    jobs.complete(jobs.run())
    assert step.ends() == 0


def test_a_job_of_another_placement_is_replaced_and_its_follower_fails(jobs, start):
    step = start()
    step.says("is made")
    first_uid = jobs.one()["metadata"]["uid"]
    start(STORE_PLACE.model_copy(update={"image": "mirror.example/agentworld:8"}))
    wait_for(lambda: [job["metadata"]["uid"] for job in jobs.all()] not in ([], [first_uid]))
    assert step.ends() == 1
    assert "was deleted before it was complete; run the step again" in step.said
    (container,) = jobs.one()["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "mirror.example/agentworld:8"


def test_a_job_that_completes_without_a_receipt_is_a_failure(jobs, start):
    step = start()
    jobs.complete(jobs.run())
    assert step.ends() == 1
    assert f"collect is not finished in {step.store}; see that its nodes mount" in step.said


def test_a_finished_step_needs_no_cluster(jobs, start, tmp_path):
    step = start(kubeconfig=tmp_path / "none", namespace="")
    assert step.ends() == 1
    step.finish()
    second = start(kubeconfig=tmp_path / "none", namespace="")
    assert second.ends() == 0
    assert second.said == f"made {second.folder}\n"
    assert jobs.all() == []


def test_without_a_place_the_step_fails_with_the_sandbox_error(jobs, start):
    step = start(None)
    assert step.ends() == 1
    assert "EnvironmentUnavailable: no sandbox: bubblewrap (bwrap) is not installed" in step.said
    assert jobs.all() == []
    progress = read_progress(step.store, "collect")
    assert progress
    assert (progress.state, progress.failure) == ("failed", "EnvironmentUnavailable")


def test_the_error_of_an_account_without_the_role_names_the_missing_right(jobs, start):
    trainers.unbind(jobs.server, jobs.namespace)
    step = start()
    assert step.ends() == 1
    assert 'cannot get resource "jobs"' in step.said
    assert jobs.all() == []


def test_the_job_has_the_seccomp_profile_of_the_steps_settings(jobs, start):
    start(seccomp_profile="profiles/shells.json")
    (container,) = jobs.one()["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["seccompProfile"] == {
        "type": "Localhost",
        "localhostProfile": "profiles/shells.json",
    }
