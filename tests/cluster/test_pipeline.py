"""A whole compiled pipeline on real nodes: each component is a pod of our image.

The pods are restricted as in Kubeflow, so that live shells need a separate Job. One stage is
trained by two nodes, and the pod of another is deleted in the middle.
"""

import re
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from kubernetes import client

import make.pipelines
from agentworld.cluster.client import ApiServer, configuration
from agentworld.records.conclusion import Conclusion
from agentworld.records.simulator import SimulatorManifest
from agentworld.steps.table import MAIN_JOB
from agentworld.storage.receipts import read_receipt
from agentworld_pipelines.placement import Nodes, Place, Placement
from agentworld_pipelines.retries import Retries
from fakes import trainer
from fakes.node_trainer import training
from fakes.pod_pipeline import Job, PodPipeline, Ran
from machines import images

pytestmark = pytest.mark.waits

CLAIM, STORE = "stores", "/stores/smoke"
STEPS_HERE = MAIN_JOB[: MAIN_JOB.index("deploy") + 1]
TAKEN = "cpt"
GRACE_SECONDS = 1


class Training(NamedTuple):
    """The environment of the runs."""

    job: Job
    store: Path
    """The store, as this machine sees it."""
    server: ApiServer


@pytest.fixture(scope="module")
def place(cluster, tmp_path_factory) -> Training:
    folder = tmp_path_factory.mktemp("pipeline")
    for each in ("stores", "outputs"):
        (folder / each).mkdir()
        (folder / each).chmod(0o777)
    trainer.define(cluster.control)
    namespace, _ = trainer.new_namespace(cluster.control)
    core = client.CoreV1Api(cluster.client)
    claim(core, namespace, folder / "stores")
    job = Job(core, namespace, "job-1", folder / "outputs", account=trainer.ACCOUNT)
    server = ApiServer(configuration(cluster.control.kubeconfig))
    return Training(job, folder / "stores/smoke", server)


def claim(core: client.CoreV1Api, namespace: str, folder: Path) -> None:
    """A folder that all nodes mount."""
    kept = {"accessModes": ["ReadWriteMany"], "storageClassName": "of-the-tests"}
    spec = {
        **kept,
        "capacity": {"storage": "10Gi"},
        "claimRef": {"name": CLAIM, "namespace": namespace},
        "hostPath": {"path": str(folder)},
    }
    core.create_persistent_volume({"metadata": {"name": f"{namespace}-{CLAIM}"}, "spec": spec})
    wanted = {**kept, "resources": {"requests": {"storage": "10Gi"}}}
    core.create_namespaced_persistent_volume_claim(
        namespace, {"metadata": {"name": CLAIM}, "spec": wanted}
    )


class Preemption:
    """Takes a step's first pod away once it has a checkpoint, as a spot node's end does.

    Its processes are stopped first: it would be done before a busy cluster hears that it is gone.
    """

    def __init__(self, place: Training) -> None:
        self._place = place
        self.saved_steps = 0
        """Of the previous checkpoint."""

    def see(self, task: str, pod: str) -> None:
        """Called for each pod that is started."""
        if task == TAKEN and pod.endswith("-0"):
            threading.Thread(target=self._take, args=(pod,), daemon=True).start()

    def _take(self, pod: str) -> None:
        began = time.monotonic()
        while not self._saved():  # as often as can be: the training does not wait
            assert time.monotonic() - began < 300
            time.sleep(0.005)
        stop_processes(pod)
        self.saved_steps = max(self._saved())
        self._place.job.core.delete_namespaced_pod(
            pod, self._place.job.namespace, grace_period_seconds=GRACE_SECONDS
        )

    def _saved(self) -> list[int]:
        """The steps after which there is a whole checkpoint."""
        folder = self._place.store / "steps" / TAKEN
        found = folder.glob("*/checkpoints/checkpoint-*/manifest.json")
        return [int(each.parent.name.rpartition("-")[2]) for each in found]


def stop_processes(pod: str) -> None:
    """All of a pod's, as one that loses its processor."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HOSTNAME") == pod:
                process.suspend()


class Whole(NamedTuple):
    """A run, and what happened on its way."""

    ran: Ran
    preemption: Preemption


@pytest.fixture(scope="module")
def whole(place) -> Whole:
    default = Place(
        volumes={CLAIM: "/stores"},
        environment={"OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "info"},
        retries=Retries(times=1, wait_seconds=0),
    )
    steps = {"sft": Place(nodes=Nodes(count=2))}
    placement = Placement(image=images.built("train").name, default=default, steps=steps)
    compiled = make.pipelines.compiled("world_model", placement)
    preemption = Preemption(place)
    with training(place.server, place.job.core, place.job.namespace):
        ran = PodPipeline(place.job, compiled, preemption.see).run(recipe="smoke", store=STORE)
    return Whole(ran, preemption)


def test_every_component_runs_as_a_pod_and_succeeds(place, whole):
    said = {step: log_of(place, pods[-1])[-2000:] for step, pods in whole.ran.pods.items()}
    assert set(whole.ran.states.values()) == {"SUCCEEDED"}, said
    assert {step.replace("-", "_") for step in whole.ran.pods} == {*STEPS_HERE, "conclude"}


def log_of(place: Training, pod: str) -> str:
    """The output of its container."""
    return str(place.job.core.read_namespaced_pod_log(pod, place.job.namespace))


def test_a_step_whose_pod_is_deleted_resumes_from_its_checkpoint(place, whole):
    _, second = whole.ran.pods[TAKEN]
    said = log_of(place, second)
    resumed = re.search(r"Resuming training from checkpoint .* global step (\d+)", said)
    assert resumed, said
    assert int(resumed[1]) >= whole.preemption.saved_steps > 0


def test_a_multi_node_stage_trains_on_both_nodes_and_its_log_is_followed(place, whole):
    core, namespace = place.job.core, place.job.namespace
    pods = core.list_namespaced_pod(namespace, label_selector="jobset.sigs.k8s.io/jobset-name")
    assert sorted(each.spec.node_name for each in pods.items) == ["node-1", "node-2"]
    assert {each.status.phase for each in pods.items} == {"Succeeded"}
    told = log_of(place, whole.ran.pods["sft"][-1])
    assert "complete" in told.lower(), told


def test_live_shells_run_only_in_a_separate_job(place, whole):
    listed = client.BatchV1Api(place.job.core.api_client).list_namespaced_job(place.job.namespace)
    (job,) = listed.items
    assert job.metadata.annotations["agentworld.dev/step"] == "collect"
    assert job.status.succeeded == 1
    assert job.metadata.name in log_of(place, whole.ran.pods["collect"][-1])


def test_steps_pass_on_store_folders_and_no_data(place, whole):
    handed = {step: made["Output"] for step, made in whole.ran.outputs.items() if "Output" in made}
    assert handed.pop("gate") == "passed"
    for step, folder in handed.items():
        assert folder.startswith(f"{STORE}/"), step
    sizes = [path.stat().st_size for path in place.job.outputs.rglob("*") if path.is_file()]
    assert max(sizes) < 1000


@pytest.mark.usefixtures("whole")
def test_the_run_has_a_conclusion_and_every_step_has_a_receipt(place):
    told = Conclusion.read(place.store / f"jobs/{place.job.id}.json")
    assert (told.pipeline, told.state) == ("world_model", "succeeded")
    for step in STEPS_HERE:
        (folder,) = [each for each in (place.store / "steps" / step).iterdir() if each.is_dir()]
        read_receipt(folder)


@pytest.mark.usefixtures("whole")
def test_the_deployed_simulator_has_the_weights_of_the_passed_stage(place):
    (path,) = (place.store / "simulators").glob("*/manifest.json")
    manifest = SimulatorManifest.read(path)
    (rl,) = [each for each in (place.store / "steps/rl").iterdir() if each.is_dir()]
    assert manifest.artifact == read_receipt(rl).output
