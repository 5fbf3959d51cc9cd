"""Releases of the chart on a control plane without nodes, which is older than the chart supports.

The tests' own Kubernetes is 1.20. The parts that it does not support are changed in a copy: the
minimum version of Kubernetes, the API version of disruption budgets, and rules in CEL.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import yaml
from helm_python.config import Config
from kubernetes.client import BatchV1Api

import make.chart
from agentworld.cluster import api_resources
from agentworld.cluster.api_resources import ApiResource
from agentworld.errors import ClusterError
from machines.control_plane import ControlPlane
from make.operator import OLDER_BUDGETS, RIGHTS, Namespace, kubeconfig

Object = dict[str, Any]

SECONDS = 180

API_RESOURCES = {
    **api_resources.API_RESOURCES,
    **RIGHTS,
    "NetworkPolicy": ApiResource("networking.k8s.io/v1", "networkpolicies"),
    "PersistentVolumeClaim": ApiResource("v1", "persistentvolumeclaims"),
    "PodDisruptionBudget": OLDER_BUDGETS,
    "StatefulSet": ApiResource("apps/v1", "statefulsets"),
}


def older_chart(folder: Path) -> Path:
    """A copy that the tests' server supports."""
    copy = folder / "chart"
    shutil.copytree(make.chart.CHART, copy)
    changed(copy / "Chart.yaml", ">=1.30.0-0", ">=1.20.0-0")
    for name in ("operator", "service", "console"):
        budgets = copy / f"templates/{name}/deployment.yaml"
        changed(budgets, "apiVersion: policy/v1\n", "apiVersion: policy/v1beta1\n")
        changed(budgets, "  unhealthyPodEvictionPolicy: AlwaysAllow\n", "")
    for path in (copy / "crds").iterdir():
        path.write_text(yaml.safe_dump(without_cel(yaml.safe_load(path.read_text()))))
    return copy


def previous_chart(folder: Path, chart: Path) -> Path:
    """The previous release: there was none, so this is the present one with some parts removed."""
    copy = folder / "previous"
    shutil.copytree(chart, copy)
    release = yaml.safe_load((chart / "Chart.yaml").read_text())["version"]
    changed(copy / "Chart.yaml", f"ersion: {release}\n", "ersion: 0.0.9\n")
    events = '  - apiGroups: [""]\n    resources: [events]\n    verbs: [create]\n'
    changed(copy / "templates/operator/rights.yaml", events, "")
    return copy


def changed(path: Path, old: str, new: str) -> None:
    """Replaces a text in a chart's file; fails if it is missing."""
    text = path.read_text()
    assert old in text, f"{path} has not got {old!r}"
    path.write_text(text.replace(old, new))


def without_cel(node: Any) -> Any:
    if isinstance(node, list):
        return [without_cel(item) for item in node]
    if not isinstance(node, dict):
        return node
    properties = {name: value for name, value in node.items() if name != "x-kubernetes-validations"}
    return {name: without_cel(value) for name, value in properties.items()}


class Release(NamedTuple):
    """A release in a namespace, with the name `agentworld`."""

    cluster: ControlPlane
    namespace: Namespace
    charts: tuple[Path, Path]
    """The previous chart, and this one."""

    def install(self, *, previous: bool = False, **values: object) -> Object:
        with self._helm() as helm:
            chart = self.charts[0 if previous else 1]
            values = make.chart.with_tags(values)
            return helm.install(chart, "agentworld", values, timeout=SECONDS)

    def upgrade(self, **values: object) -> Object:
        with self._helm() as helm:
            values = make.chart.with_tags(values)
            return helm.upgrade(self.charts[1], "agentworld", values, timeout=SECONDS)

    def roll_back(self) -> None:
        with self._helm() as helm:
            helm.rollback("agentworld", timeout=SECONDS)

    def uninstall(self) -> Object:
        with self._helm() as helm:
            return helm.uninstall("agentworld", timeout=SECONDS)

    def exists(self) -> bool:
        with self._helm() as helm:
            return bool(helm.list())

    def history(self) -> list[tuple[str, str]]:
        """The chart's version and the state of each revision."""
        with self._helm() as helm:
            revisions = helm.history("agentworld")
        return [(item["chart_version"], item["status"]) for item in revisions]

    def get(self, kind: str, name: str) -> Object | None:
        """An object of any kind that the chart creates."""
        try:
            return self.namespace.call(
                "GET", API_RESOURCES[kind].path(self.namespace.namespace, name), {}
            )
        except ClusterError as error:
            if error.status == 404:
                return None
            raise

    def guard(self) -> None:
        """Labels the namespace as newer servers do, so that the webhook is called for it."""
        name = self.namespace.namespace
        labels = {"kubernetes.io/metadata.name": name}
        self.namespace.patch("Namespace", name, {"metadata": {"labels": labels}})

    def _helm(self) -> Config:
        name = self.namespace.namespace
        return Config(kubeconfig_path=self.cluster.kubeconfig, namespace=name)


@contextmanager
def jobs_run(cluster: ControlPlane) -> Iterator[None]:
    """Runs the program of each Job here, with its own account, as nodes would."""
    stop = Event()

    def run() -> None:
        jobs = BatchV1Api(cluster.client)
        while not stop.wait(0.1):
            for job in jobs.list_job_for_all_namespaces().items:
                if not job.status.conditions:
                    status = _run(cluster, job)
                    name, namespace = job.metadata.name, job.metadata.namespace
                    jobs.patch_namespaced_job_status(name, namespace, {"status": status})

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _run(cluster: ControlPlane, job: Any) -> Object:
    spec = job.spec.template.spec
    [container] = spec.containers
    namespace = Namespace(cluster.client, job.metadata.namespace)
    variables = {item.name: item.value for item in container.env}
    variables["AGENTWORLD_KUBECONFIG"] = str(
        kubeconfig(cluster, namespace, spec.service_account_name)
    )
    result = subprocess.run(
        [sys.executable, *container.command[1:]],
        env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
        capture_output=True,
        text=True,
    )
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if result.returncode:
        return {"conditions": [{"type": "Failed", "status": "True", "message": result.stderr}]}
    conditions = [{"type": "Complete", "status": "True"}]
    return {"succeeded": 1, "completionTime": now, "conditions": conditions}
