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
PREEMPTED_STEP = "cpt"
GRACE_SECONDS = 1


class Training(NamedTuple):
    """The environment of the runs."""

    job: Job
    store: Path
    """The store, as this machine sees it."""
    server: ApiServer


@pytest.fixture(scope="module")
def environment(cluster, tmp_path_factory) -> Training:
    folder = tmp_path_factory.mktemp("pipeline")
    for name in ("stores", "outputs"):
        (folder / name).mkdir()
        (folder / name).chmod(0o777)
    trainer.define(cluster.control)
    namespace, _ = trainer.new_namespace(cluster.control)
    core = client.CoreV1Api(cluster.client)
    claim(core, namespace, folder / "stores")
    job = Job(core, namespace, "job-1", folder / "outputs", account=trainer.ACCOUNT)
    server = ApiServer(configuration(cluster.control.kubeconfig))
    return Training(job, folder / "stores/smoke", server)


def claim(core: client.CoreV1Api, namespace: str, folder: Path) -> None:
    """A folder that all nodes mount."""
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": "of-the-tests"}
    spec = {
        **common,
        "capacity": {"storage": "10Gi"},
        "claimRef": {"name": CLAIM, "namespace": namespace},
        "hostPath": {"path": str(folder)},
    }
    core.create_persistent_volume({"metadata": {"name": f"{namespace}-{CLAIM}"}, "spec": spec})
    claim_spec = {**common, "resources": {"requests": {"storage": "10Gi"}}}
    core.create_namespaced_persistent_volume_claim(
        namespace, {"metadata": {"name": CLAIM}, "spec": claim_spec}
    )


class Preemption:
    """Deletes a step's first pod once it has a checkpoint, like the end of a spot node.

    Its processes are stopped first: otherwise the step ends before a busy cluster reacts.
    """

    def __init__(self, environment: Training) -> None:
        self._place = environment
        self.saved_steps = 0
        """Of the previous checkpoint."""

    def see(self, task: str, pod: str) -> None:
        """Called for each pod that is started."""
        if task == PREEMPTED_STEP and pod.endswith("-0"):
            threading.Thread(target=self._take, args=(pod,), daemon=True).start()

    def _take(self, pod: str) -> None:
        start = time.monotonic()
        while not self._saved():  # a short pause, because the training does not wait
            assert time.monotonic() - start < 300
            time.sleep(0.005)
        stop_processes(pod)
        self.saved_steps = max(self._saved())
        self._place.job.core.delete_namespaced_pod(
            pod, self._place.job.namespace, grace_period_seconds=GRACE_SECONDS
        )

    def _saved(self) -> list[int]:
        """The steps with a complete checkpoint."""
        folder = self._place.store / "steps" / PREEMPTED_STEP
        manifests = folder.glob("*/checkpoints/checkpoint-*/manifest.json")
        return [int(manifest.parent.name.rpartition("-")[2]) for manifest in manifests]


def stop_processes(pod: str) -> None:
    """Suspends all processes of a pod, as if it lost its processor."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("HOSTNAME") == pod:
                process.suspend()


class Whole(NamedTuple):
    """A run, and the preemption during it."""

    ran: Ran
    preemption: Preemption


@pytest.fixture(scope="module")
def whole(environment) -> Whole:
    default = Place(
        volumes={CLAIM: "/stores"},
        environment={"OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "info"},
        retries=Retries(times=1, wait_seconds=0),
    )
    steps = {"sft": Place(nodes=Nodes(count=2))}
    placement = Placement(image=images.built("train").name, default=default, steps=steps)
    compiled = make.pipelines.compiled("world_model", placement)
    preemption = Preemption(environment)
    with training(environment.server, environment.job.core, environment.job.namespace):
        run = PodPipeline(environment.job, compiled, preemption.see).run(
            recipe="smoke", store=STORE
        )
    return Whole(run, preemption)


def test_every_component_runs_as_a_pod_and_succeeds(environment, whole):
    logs = {step: log_of(environment, pods[-1])[-2000:] for step, pods in whole.ran.pods.items()}
    assert set(whole.ran.states.values()) == {"SUCCEEDED"}, logs
    assert {step.replace("-", "_") for step in whole.ran.pods} == {*STEPS_HERE, "conclude"}


def log_of(environment: Training, pod: str) -> str:
    """The log of the pod's container."""
    return str(environment.job.core.read_namespaced_pod_log(pod, environment.job.namespace))


def test_a_step_whose_pod_is_deleted_resumes_from_its_checkpoint(environment, whole):
    _, second_pod = whole.ran.pods[PREEMPTED_STEP]
    log = log_of(environment, second_pod)
    match = re.search(r"Resuming training from checkpoint .* global step (\d+)", log)
    assert match, log
    assert int(match[1]) >= whole.preemption.saved_steps > 0


def test_a_multi_node_stage_trains_on_both_nodes_and_its_log_is_followed(environment, whole):
    core, namespace = environment.job.core, environment.job.namespace
    pods = core.list_namespaced_pod(namespace, label_selector="jobset.sigs.k8s.io/jobset-name")
    assert sorted(pod.spec.node_name for pod in pods.items) == ["node-1", "node-2"]
    assert {pod.status.phase for pod in pods.items} == {"Succeeded"}
    log = log_of(environment, whole.ran.pods["sft"][-1])
    assert "complete" in log.lower(), log


def test_live_shells_run_only_in_a_separate_job(environment, whole):
    jobs = client.BatchV1Api(environment.job.core.api_client).list_namespaced_job(
        environment.job.namespace
    )
    (job,) = jobs.items
    assert job.metadata.annotations["agentworld.dev/step"] == "collect"
    assert job.status.succeeded == 1
    assert job.metadata.name in log_of(environment, whole.ran.pods["collect"][-1])


def test_steps_pass_on_store_folders_and_no_data(environment, whole):
    outputs = {
        step: output["Output"] for step, output in whole.ran.outputs.items() if "Output" in output
    }
    assert outputs.pop("gate") == "passed"
    for step, folder in outputs.items():
        assert folder.startswith(f"{STORE}/"), step
    sizes = [path.stat().st_size for path in environment.job.outputs.rglob("*") if path.is_file()]
    assert max(sizes) < 1000


@pytest.mark.usefixtures("whole")
def test_the_run_has_a_conclusion_and_every_step_has_a_receipt(environment):
    conclusion = Conclusion.read(environment.store / f"jobs/{environment.job.id}.json")
    assert (conclusion.pipeline, conclusion.state) == ("world_model", "succeeded")
    for step in STEPS_HERE:
        (folder,) = [
            path for path in (environment.store / "steps" / step).iterdir() if path.is_dir()
        ]
        read_receipt(folder)


@pytest.mark.usefixtures("whole")
def test_the_deployed_simulator_has_the_weights_of_the_passed_stage(environment):
    (path,) = (environment.store / "simulators").glob("*/manifest.json")
    manifest = SimulatorManifest.read(path)
    (rl,) = [folder for folder in (environment.store / "steps/rl").iterdir() if folder.is_dir()]
    assert manifest.artifact == read_receipt(rl).output
