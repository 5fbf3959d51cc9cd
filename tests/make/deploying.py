"""The step `deploy`, run as in a pod of a pipeline, with a real API server."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

import make.chart
from agentworld.operations.simulators import attach
from agentworld.storage.simulators import SimulatorStore
from agentworld_pipelines.deploying import deploy_on_cluster
from agentworld_pipelines.placement import Placement
from machines.kubelet import Kubelet
from make import records
from make.operator import RIGHTS
from make.simulator import IMAGE, pinned_manifest
from make.weights import weights

ALIAS = "world"
ACCOUNT = "pipeline-runner"


def named(manifest) -> str:
    return f"{ALIAS}-{manifest.digest[7:19]}"


ONE, TWO = pinned_manifest("one"), pinned_manifest("two")
_CODE = (
    "import sys; from agentworld_pipelines.deploying import deploy_on_cluster;"
    " deploy_on_cluster(*sys.argv[1:])"
)


def allow(namespace) -> None:
    """Grants the rights that the chart gives to the service account of runs in another
    namespace.
    """
    metadata = {"metadata": {"name": ACCOUNT}}
    values = {"pipelines": {"account": {"name": ACCOUNT, "namespace": "kubeflow"}}}
    rules = make.chart.only(make.chart.objects(values), "Role", "agentworld-runs")["rules"]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT}
    subjects = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace.namespace}]
    for kind, fields in (
        ("ServiceAccount", {}),
        ("Role", {"rules": rules}),
        ("RoleBinding", {"roleRef": role, "subjects": subjects}),
    ):
        resource = RIGHTS[kind]
        manifest = {"apiVersion": resource.api_version, "kind": kind, **metadata, **fields}
        namespace.call("POST", resource.path(namespace.namespace), manifest)


def may_write(namespace) -> bool:
    """Whether the API server has processed the right of the steps' account to change aliases."""
    scope = {"namespace": namespace.namespace, "group": "agentworld.dev"}
    attributes = {**scope, "resource": "simulatoraliases", "verb": "patch"}
    account = f"system:serviceaccount:{namespace.namespace}:{ACCOUNT}"
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    review["spec"] = {"user": account, "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return namespace.call("POST", path, review)["status"]["allowed"]


class Step:
    """The step in a pod of a pipeline, which the environment identifies."""

    def __init__(self, namespace, store: Path, url: str, kubeconfig: Path) -> None:
        self.namespace, self.store, self.url = namespace, store, url
        self.environment = {
            "AGENTWORLD_KUBECONFIG": str(kubeconfig),
            "AGENTWORLD_NAMESPACE": namespace.namespace,
        }
        self.deployment = {"image": IMAGE, "claim": "stores", "ready_seconds": 60}
        self.least = 0.8

    def pinned(self, manifest=ONE, mean: float = 0.82) -> str:
        """The folder of a simulator with evaluated weights."""
        (self.store / "weights").mkdir(exist_ok=True)
        (self.store / "weights/model.safetensors").write_bytes(weights())
        simulators = SimulatorStore(self.store)
        simulators.import_model(self.store / "weights")
        simulator = simulators.keep(manifest)
        stages = {"rl": records.world_score(mean)}
        report = records.world_report(stages=stages, artifacts={"rl": manifest.artifact})
        attach(simulator, report, self.store)
        return str(simulator.folder)

    def arguments(self, folder: str) -> list[str]:
        recipe = self.store / "mine.yaml"
        gate = [{"metric": "rl.exact_match", "least": self.least}]
        recipe.write_text(json.dumps({"name": "mine", "gate": gate}))
        volumes = {"stores": str(self.store.parent)}
        placement = {"deploy": self.deployment, "steps": {"deploy": {"volumes": volumes}}}
        target = Placement.model_validate(placement).target
        return [str(recipe), str(self.store), folder, target]

    def run(self, folder: str) -> Path:
        return Path(deploy_on_cluster(*self.arguments(folder)))

    def start(self, folder: str) -> subprocess.Popen:
        """Starts the step in a separate process."""
        environment = {**os.environ, **self.environment, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen(
            [sys.executable, "-c", _CODE, *self.arguments(folder)], env=environment
        )

    def alias(self) -> dict | None:
        resource = self.namespace.get("SimulatorAlias", ALIAS)
        return resource and resource["spec"]


@contextmanager
def kubelet(namespace):
    """Starts every pod of an engine, with verified weights, while the block runs."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(Kubelet(namespace).run())

    def run():
        with pytest.raises(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
