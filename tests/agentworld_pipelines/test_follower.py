"""When a follower keeps the existing Job, and when it replaces the Job."""

from copy import deepcopy
from pathlib import Path

import pytest

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import EXISTS
from agentworld.errors import ClusterError
from agentworld_pipelines.compute import CpuMemory
from agentworld_pipelines.follower import Follower
from agentworld_pipelines.placement import Nodes, Place
from agentworld_pipelines.settings import ClusterSettings
from agentworld_pipelines.step_job import stage_job
from agentworld_pipelines.train_job import train_job

FOLDER = Path("/stores/demo/steps/sft/0123456789abcdef")
ARGUMENTS = ["demo", "/stores/demo"]
SMALL = Place(image="x", nodes=Nodes(count=1), requests=CpuMemory(memory="1Gi"))
LARGE = SMALL.model_copy(update={"requests": CpuMemory(memory="2Gi")})


def job_of(place: Place) -> Object:
    return stage_job("sft", ARGUMENTS, FOLDER, place)


class Jobs:
    """The only Job of a namespace, as an API server stores it.

    The fields that may change are those of Kubernetes (KEP-5440, pull requests 132441 and 135965):
    since 1.36, the resources in the pod template while `suspend` is true; before, none.
    """

    def __init__(self, job: Object, *, suspended: bool, refusal: int = 0) -> None:
        self.job: Object | None = deepcopy(job)
        self.job["metadata"] |= {"uid": "first", "resourceVersion": "1"}
        self.job["spec"]["suspend"] = suspended
        self._refusal = refusal

    def get(self, _kind: str, _name: str) -> Object | None:
        return deepcopy(self.job)

    def create(self, manifest: Object) -> Object:
        self.job = deepcopy(manifest)
        self.job["metadata"]["uid"] = "second"
        return self.job

    def replace(self, manifest: Object) -> Object:
        assert self.job
        if self._refusal:
            raise ClusterError("spec.template: field is immutable", status=self._refusal)
        if manifest["metadata"]["resourceVersion"] != self.job["metadata"]["resourceVersion"]:
            raise ClusterError("the object has been modified", status=EXISTS)
        assert without_resources(manifest) == without_resources(self.job)
        self.job = deepcopy(manifest)
        return self.job

    def delete(self, _kind: str, _name: str, options: Object) -> None:
        assert self.job
        assert options["preconditions"] == {"uid": self.job["metadata"]["uid"]}
        self.job = None


def without_resources(job: Object) -> Object:
    spec = deepcopy(job["spec"])
    spec["template"]["spec"]["containers"][0].pop("resources")
    return spec


def begin(jobs: Jobs, manifest: Object) -> str | None:
    """The uid of the followed Job."""
    follower = Follower(jobs, manifest, ClusterSettings(look_seconds=0.001))
    return follower.begin(lambda: None, lambda: None)


def memory(jobs: Jobs) -> str:
    assert jobs.job
    (container,) = jobs.job["spec"]["template"]["spec"]["containers"]
    return str(container["resources"]["requests"]["memory"])


def test_a_suspended_job_gets_new_resources_without_being_replaced(capsys):
    jobs = Jobs(job_of(SMALL), suspended=True)
    assert begin(jobs, job_of(LARGE)) == "first"
    assert memory(jobs) == "2Gi"
    assert "is suspended; it has its new resources" in capsys.readouterr().out
    assert begin(jobs, job_of(LARGE)) == "first"
    assert capsys.readouterr().out.endswith("is there already\n")


def test_externally_changed_resources_of_a_suspended_job_are_kept():
    jobs = Jobs(job_of(SMALL), suspended=True)
    (container,) = jobs.job["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"memory": "512Mi"}}
    assert begin(jobs, job_of(SMALL)) == "first"
    assert memory(jobs) == "512Mi"


@pytest.mark.parametrize("refusal", [403, 422], ids=["Role of before", "Kubernetes before 1.36"])
def test_a_suspended_job_whose_resources_cannot_change_is_replaced(refusal):
    jobs = Jobs(job_of(SMALL), suspended=True, refusal=refusal)
    assert begin(jobs, job_of(LARGE)) == "second"
    assert memory(jobs) == "2Gi"


def test_a_running_job_is_replaced_for_other_resources():
    jobs = Jobs(job_of(SMALL), suspended=False)
    assert begin(jobs, job_of(LARGE)) == "second"


def test_a_suspended_job_that_differs_in_more_than_resources_is_replaced():
    jobs = Jobs(job_of(SMALL), suspended=True)
    assert begin(jobs, job_of(LARGE.model_copy(update={"image": "y"}))) == "second"


def test_a_suspended_job_is_read_again_after_a_conflicting_write():
    jobs = Jobs(job_of(SMALL), suspended=True)
    get_job, names = jobs.get, []

    def get(kind: str, name: str) -> Object | None:
        job = get_job(kind, name)
        if not names and job:
            job["metadata"]["resourceVersion"] = "0"
        names.append(name)
        return job

    jobs.get = get
    assert begin(jobs, job_of(LARGE)) == "first"
    assert memory(jobs) == "2Gi"


def test_other_resources_change_the_annotations_of_a_train_job():
    """Trainer accepts no change of `trainer` (`self == oldSelf` in trainjob_types.go)."""
    places = [place.model_copy(update={"nodes": Nodes(count=2)}) for place in (SMALL, LARGE)]
    small, large = (train_job("sft", ARGUMENTS, FOLDER, place) for place in places)
    assert small["metadata"]["annotations"] != large["metadata"]["annotations"]
