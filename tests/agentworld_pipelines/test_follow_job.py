"""TrainJobs of a real API server train stages; a test does what Kubeflow's Trainer does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agentworld.cluster.client import Cluster
from agentworld.cluster.names import PIPELINES
from agentworld.errors import ClusterError, UnknownPath
from agentworld.runner.progress import ProgressFile
from agentworld.steps.run import folder_for
from agentworld_pipelines.follower import Follower
from agentworld_pipelines.placement import Nodes, Place
from agentworld_pipelines.settings import ClusterSettings
from agentworld_pipelines.train_job import train_job
from fakes import trainer as trainers
from fakes.batch_jobs import Jobs
from fakes.trainer import Kubelet, Trainer
from machines.control_plane import ControlPlane
from machines.step_process import StepProcess, run_training
from make import pages, records
from make.guide import blocks
from make.places import PLACE
from waiting import wait_for

pytestmark = pytest.mark.waits

NODES = Place(image="mirror.example/agentworld:7", nodes=Nodes(count=2))


class Step(StepProcess):
    """A stage's step as its pod runs it."""

    def __init__(self, store: Path, environment: dict[str, str], place: Place = NODES) -> None:
        self.data = store / "steps/prepare/data"
        place_json = place.model_dump_json(exclude_defaults=True)
        arguments = ("demo", str(store), str(self.data), place_json)
        super().__init__(store, environment, run_training, *arguments)

    @property
    def folder(self) -> Path:
        return folder_for("cpt", "demo", str(self.store), str(self.data))

    def finish(self) -> None:
        """Ends the stage as its nodes do."""
        records.receipt("cpt", records.digest("made")).write(self.folder / "receipt.json")


@pytest.fixture(scope="module", autouse=True)
def train_job_kinds(control_plane: ControlPlane) -> None:
    trainers.define(control_plane)


@pytest.fixture
def trainer(control_plane: ControlPlane, kubelet: Kubelet, account: tuple[str, Path]) -> Trainer:
    return Trainer(control_plane, kubelet, account[0])


@pytest.fixture
def start(tmp_path: Path, start_step: Callable[..., Step]) -> Callable[..., Step]:
    data = Path(records.prepared(tmp_path, "data"))
    data.rename(data.with_name("data"))
    return lambda place=NODES, **settings: start_step(Step, place, **settings)


def test_the_api_server_keeps_every_field_of_a_new_train_job(trainer, start):
    step = start(PLACE)
    job = trainer.job()
    arguments = ["demo", str(step.store), str(step.data)]
    manifest = train_job("cpt", arguments, step.folder, PLACE)
    assert job["spec"] == manifest["spec"]
    assert job["metadata"]["labels"] == manifest["metadata"]["labels"]
    assert job["metadata"]["annotations"] == manifest["metadata"]["annotations"]
    assert "ownerReferences" not in job["metadata"]


def test_a_stage_is_followed_from_its_queue_to_its_end(trainer, start):
    step = start()
    trainer.condition("Suspended", "Suspended", "TrainJob is suspended")
    step.says("is waiting (Suspended: TrainJob is suspended)")
    trainer.condition("Suspended", "Resumed", status="False")
    trainer.pod(1)
    pod = trainer.pod(0)
    trainer.kubelet.say(pod, "the first words")
    step.says("the first words")
    progress = ProgressFile(step.store, "cpt")
    progress.update(10, 100)
    step.says("cpt: 10 of 100\n")
    ProgressFile(step.store, "cpt").update(60, 100)
    step.says("cpt: 60 of 100, ")
    for word in ("second", "third"):
        trainer.kubelet.say(pod, f"the {word} words")
    step.finish()
    trainer.condition("Complete", "AllJobsCompleted")
    assert step.ends() == 0
    lines = step.said.splitlines()
    log_lines = [line for line in lines if line.startswith("the ")]
    assert log_lines == ["the first words", "the second words", "the third words"]
    assert lines[-1] == f"made {step.folder}"
    guide = (pages.ROOT / "docs/guides/several-nodes.md").read_text()
    (example,) = [text for text in blocks(guide, "text") if "is waiting" in text]
    assert {*pages.forms(example)} <= {*pages.forms(step.said)}
    assert trainer.jobs() != []  # its pods hold the logs


def test_a_stage_on_one_node_is_followed_as_a_job(control_plane, kubelet, account, start):
    jobs = Jobs(control_plane, kubelet, account[0])
    step = start(Place(image="mirror.example/agentworld:7", nodes=Nodes(count=1)))
    pod = jobs.run()
    jobs.kubelet.say(pod, "the first words")
    step.says("the first words")
    step.finish()
    jobs.complete(pod)
    assert step.ends() == 0
    assert step.said.endswith(f"made {step.folder}\n")


def test_an_unreadable_pod_log_does_not_end_the_step(trainer, start):
    step = start()
    trainer.pod(0, node="of-nobody")
    step.says("cannot be read: ")
    step.finish()
    trainer.condition("Complete", "AllJobsCompleted")
    assert step.ends() == 0
    assert step.said.count("cannot be read") == 1


def test_the_error_of_a_failed_training_contains_every_reported_reason(trainer, start):
    step = start()
    pod = trainer.pod(0)
    trainer.end_container(pod, reason="OOMKilled", exitCode=137)
    step.says(f"{pod}: OOMKilled, exit code 137")
    trainer.condition("Failed", "JobsFailed", "jobset failed")
    assert step.ends() == 1
    (error,) = [line for line in step.said.splitlines() if "PipelineError" in line]
    assert "failed (JobsFailed: jobset failed)" in error
    assert f"{pod}: OOMKilled, exit code 137" in error
    assert "run the step again to resume" in error


def test_no_retry_is_advised_if_the_input_of_the_stage_was_wrong(trainer, start):
    step = start()
    trainer.job()
    ProgressFile(step.store, "cpt").fail("NotFound", "there is no parent; train it first")
    trainer.condition("Failed", "JobsFailed")
    assert step.ends() == 1
    assert "cpt says: there is no parent; train it first" in step.said
    assert "no retry helps before that is put right" in step.said
    assert "run the step again" not in step.said


@pytest.mark.parametrize("end", [Step.kill, Step.terminate], ids=["killed", "preempted"])
def test_a_new_follower_continues_with_the_train_job_of_an_ended_follower(trainer, start, end):
    first = start()
    first.says("is made")
    uid = trainer.job()["metadata"]["uid"]
    end(first)
    assert first.ends() < 0
    second = start()
    second.says("is there already")
    assert trainer.job()["metadata"]["uid"] == uid
    second.finish()
    trainer.condition("Complete", "AllJobsCompleted")
    assert second.ends() == 0


def test_two_concurrent_followers_create_one_train_job(trainer, start):
    first, second = start(), start()
    wait_for(trainer.jobs)
    first.finish()
    trainer.condition("Complete", "AllJobsCompleted")
    assert (first.ends(), second.ends()) == (0, 0)
    assert len(trainer.jobs()) == 1


def test_a_train_job_that_has_just_completed_is_not_created_again(trainer, start, account):
    step = start()
    job = trainer.job()
    trainer.condition("Complete", "AllJobsCompleted")
    step.kill()
    settings = ClusterSettings(look_seconds=0.1)
    cluster = Cluster(trainer.server, account[0], PIPELINES)
    follower = Follower(cluster, job, settings)
    assert follower.begin(lambda: None, lambda: "the folder") is None
    assert trainer.job()["metadata"]["uid"] == job["metadata"]["uid"]


def test_a_failed_train_job_is_replaced_when_the_step_is_started_again(trainer, start):
    step = start()
    failed_uid = trainer.job()["metadata"]["uid"]
    trainer.condition("Failed", "JobsFailed")
    assert step.ends() == 1
    second = start()
    second.says("is made")
    assert trainer.job()["metadata"]["uid"] != failed_uid
    second.finish()
    trainer.condition("Complete", "AllJobsCompleted")
    assert second.ends() == 0


def test_a_train_job_of_another_placement_is_replaced_and_its_follower_fails(trainer, start):
    old_step = start()
    old_step.says("is made")
    new_step = start(NODES.model_copy(update={"nodes": Nodes(count=3)}))
    wait_for(lambda: trainer.job()["spec"]["trainer"]["numNodes"] == 3)
    assert old_step.ends() == 1
    new_step.finish()
    trainer.condition("Complete", "AllJobsCompleted")
    assert new_step.ends() == 0


def test_a_follower_waits_until_a_deleted_train_job_has_disappeared(trainer, start):
    first = start()
    first.says("is made")
    path = f"{trainer.path}/{trainer.job()['metadata']['name']}"
    content_type = {"content_type": "application/merge-patch+json"}
    body = {"metadata": {"finalizers": ["tests.example/held"]}}
    trainer.server.call("PATCH", path, body=body, **content_type)
    first.kill()
    trainer.server.call("DELETE", path)
    second = start()
    second.says("waiting for its deletion")
    assert "is made" not in second.said
    trainer.server.call("PATCH", path, body={"metadata": {"finalizers": []}}, **content_type)
    second.says("is made")


def test_deleting_a_train_job_ends_its_follower_with_an_error(trainer, start):
    step = start()
    step.says("is made")
    trainer.server.call("DELETE", f"{trainer.path}/{trainer.job()['metadata']['name']}")
    assert step.ends() == 1
    assert "was deleted before it was complete; run the step again" in step.said


def test_a_train_job_that_completes_without_a_receipt_is_a_failure(trainer, start):
    step = start()
    trainer.condition("Complete", "AllJobsCompleted")
    assert step.ends() == 1
    assert f"cpt is not finished in {step.store}; see that its nodes mount" in step.said


def test_a_finished_stage_needs_no_cluster(start, tmp_path):
    folder = folder_for("cpt", "demo", str(tmp_path), str(tmp_path / "steps/prepare/data"))
    records.receipt("cpt", records.digest("made")).write(folder / "receipt.json")
    step = start(kubeconfig=tmp_path / "none")
    assert step.ends() == 0
    assert step.said == f"made {folder}\n"


def test_the_follower_waits_during_an_outage_of_the_api_server(trainer, start, control_plane):
    step = start()
    step.says("is made")
    with control_plane.outage():
        step.says("does not answer")
    pod = trainer.pod(0)
    trainer.kubelet.say(pod, "still here")
    step.says("still here")
    step.finish()
    trainer.condition("Complete", "AllJobsCompleted")
    assert step.ends() == 0
    assert "is made" in step.said
    assert len(trainer.jobs()) == 1


def test_the_follower_waits_while_its_role_is_temporarily_missing(trainer, start):
    step = start()
    step.says("is made")
    trainers.unbind(trainer.server, trainer.namespace)
    step.says('cannot get resource "trainjobs"')
    trainers.bind(trainer.server, trainer.namespace)
    step.finish()
    trainer.condition("Complete", "AllJobsCompleted")
    assert step.ends() == 0
    assert step.said.count('cannot get resource "trainjobs"') == 1


def test_a_long_outage_of_the_api_server_ends_the_follower_and_not_the_training(
    trainer, start, control_plane
):
    step = start(patience_seconds=1)
    step.says("is made")
    with control_plane.outage():
        assert step.ends() == 1
        assert "ClusterError" in step.said
    assert "deletionTimestamp" not in trainer.job()["metadata"]


def test_a_real_api_server_distinguishes_an_unknown_kind_from_a_missing_object(trainer):
    assert trainer.server.find(f"{trainer.path}/none") is None
    with pytest.raises(UnknownPath):
        trainer.server.find(f"{trainer.path.replace('trainjobs', 'others')}/none")


def test_the_error_in_a_cluster_without_trainer_names_kubeflows_trainer(trainer, account):
    job = {"kind": "TrainJob", "metadata": {"name": "one"}}

    class WithoutTrainer(Cluster):
        def get(self, kind, name):
            path = f"{trainer.path}/{name}"
            return trainer.server.find(path.replace("trainjobs", kind))

    cluster = WithoutTrainer(trainer.server, account[0], PIPELINES)
    follower = Follower(cluster, job, ClusterSettings(look_seconds=0.1))
    with pytest.raises(ClusterError, match="has no TrainJob .*; install Kubeflow's Trainer"):
        follower.begin(lambda: None, lambda: None)


def test_the_error_of_an_account_without_the_role_names_the_missing_right(trainer, start):
    trainers.unbind(trainer.server, trainer.namespace)
    step = start()
    assert step.ends() == 1
    assert 'cannot get resource "trainjobs"' in step.said
    assert trainer.jobs() == []
