"""A release of our chart on the tests' nodes, and agents that use it continuously."""

import asyncio
import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from helm_python.config import Config
from kubernetes import client
from kubernetes.client.exceptions import ApiException

import make.access
from agentworld.access.key import key_digest
from agentworld.client.simulator import SimulatorClient
from agentworld.cluster.api_resources import type_fields
from agentworld.cluster.client import EXISTS
from agentworld.errors import ClusterError, SimulatorError
from agentworld.pinning.manifest import pin
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.episode import EpisodeOpening
from agentworld.records.run import RunOpening
from agentworld.records.simulator import SimulatorManifest
from machines import images
from machines.nodes import Cluster
from make import image_values, older_chart, records
from make.bounds import set_limits, set_quota
from make.operator import Namespace
from waiting import wait_for

NAME = "agentworld"
NAMESPACE = "team-a"
AGENT = make.access.key("acme-agent")
_STORAGE = "of-the-tests"
_SECONDS = 300.0
_CONTEXT_TOKENS = 1024

Object = dict[str, Any]


class Release(NamedTuple):
    """An installed chart."""

    cluster: Cluster
    namespace: Namespace
    folder: Path
    """The folder of the volumes' files, and of charts."""
    url: str
    """The URL of the service."""

    @property
    def core(self) -> client.CoreV1Api:
        return client.CoreV1Api(self.cluster.client)

    def helm(self) -> Config:
        return config(self.cluster)

    def pods(self, component: str, node: str = "") -> list[str]:
        """The names of a component's pods that are not terminating, optionally on one node."""
        pod_list = self.core.list_namespaced_pod(
            NAMESPACE, label_selector=f"app.kubernetes.io/component={component}"
        ).items
        return [
            item.metadata.name
            for item in pod_list
            if not item.metadata.deletion_timestamp and (not node or item.spec.node_name == node)
        ]

    def is_up(self) -> bool:
        """Whether every requested pod is ready."""
        apps = client.AppsV1Api(self.cluster.client)
        deployments = apps.list_namespaced_deployment(NAMESPACE).items
        sets = apps.list_namespaced_stateful_set(NAMESPACE).items
        return all(
            deployment.spec.replicas == (deployment.status.ready_replicas or 0)
            for deployment in deployments + sets
        )

    def create(self, manifest: Object) -> None:
        """Creates an object as a user does, with retries until the operator has processed it."""
        was_unanswered = False

        def is_created() -> bool:
            nonlocal was_unanswered
            try:
                self.namespace.create(manifest)
            except ClusterError as error:
                if error.status == EXISTS and was_unanswered:
                    return True
                if error.status not in (0, 500):  # no response, or the webhook has none yet
                    raise
                was_unanswered |= error.status == 0
                return False
            return True

        wait_for(is_created, _SECONDS)

    def kill(self, pod: str) -> None:
        """Kills a pod at once, as the failure of its node does."""
        self.core.delete_namespaced_pod(pod, NAMESPACE, grace_period_seconds=0)

    def secret(self, name: str) -> dict[str, str]:
        """The content of a Secret, as text."""
        data = self.namespace.get("Secret", name)["data"]
        return {key: base64.b64decode(value).decode("latin-1") for key, value in data.items()}


def config(cluster: Cluster) -> Config:
    """Helm as the cluster's administrator."""
    return Config(kubeconfig_path=cluster.control.kubeconfig, namespace=NAMESPACE)


@contextmanager
def installed(cluster: Cluster, folder: Path) -> Iterator[Release]:
    """Our own images, a PostgreSQL and an MLflow, in a namespace with a quota and limits; its pods
    may not be ready yet.
    """
    core = client.CoreV1Api(cluster.client)
    # Current API servers do this by default.
    labels = {"kubernetes.io/metadata.name": NAMESPACE}
    core.create_namespace({"metadata": {"name": NAMESPACE, "labels": labels}})
    wait_for(lambda: core.list_namespaced_service_account(NAMESPACE).items)
    namespace = Namespace(cluster.client, NAMESPACE)
    set_quota(namespace)
    set_limits(namespace)
    for claim in ("agentworld-stores", "data-agentworld-database-0", "agentworld-mlflow"):
        _volume(core, folder, claim)
    # A claim that is bound before its pod exists is mounted without a delay.
    _claim(core, "data-agentworld-database-0", "ReadWriteOnce")
    with config(cluster) as helm:
        chart = older_chart.older(folder / "before", "0.0.9")
        helm.install(chart, NAME, values(), timeout=int(_SECONDS))
    address = core.read_namespaced_service(f"{NAME}-service", NAMESPACE).spec.cluster_ip
    with cluster.reached(address, 8000) as host:
        yield Release(cluster, namespace, folder, f"http://{host}")


def values(**overrides: object) -> Object:
    """The values of this cluster's administrator."""
    resources = {"requests": {"cpu": "50m", "memory": "64Mi"}}
    keys = {"trainer": {"sha256": key_digest(AGENT), "roles": ["agent"]}}
    built_images = images.built("control"), images.built("train"), images.postgres()
    return {
        **image_values.of_images(*built_images),
        "operator": {"leaseSeconds": 6, "resources": resources},
        "service": {"engineWaitSeconds": 20, "resources": resources},
        "access": {"tenants": {"acme": {"keys": keys}}},
        "stores": {"claim": {"accessMode": "ReadWriteMany", "storageClass": _STORAGE}},
        "database": {"storageClass": _STORAGE, "resources": resources},
        "mlflow": {
            "storageClass": _STORAGE,
            "resources": resources,
            "nodeSelector": {"kubernetes.io/hostname": "node-2"},
        },
        "console": {
            "enabled": True,
            "resources": resources,
            "nodeSelector": {"kubernetes.io/hostname": "node-2"},
        },
        **overrides,
    }


def _volume(core: client.CoreV1Api, folder: Path, claim: str) -> None:
    """A folder of this machine that every node mounts, for one claim."""
    path = folder / claim
    path.mkdir()
    path.chmod(0o777)
    core.create_persistent_volume(
        {
            "metadata": {"name": claim},
            "spec": {
                "capacity": {"storage": "100Gi"},
                "accessModes": ["ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"],
                "storageClassName": _STORAGE,
                "claimRef": {"name": claim, "namespace": NAMESPACE},
                "hostPath": {"path": str(path), "type": "Directory"},
            },
        }
    )


def claimed_weights(release: Release, model: Path, name: str = "weights") -> None:
    """A claim with the files of a model."""
    _volume(release.core, release.folder, name)
    for file in model.iterdir():
        copy = release.folder / name / file.name
        copy.write_bytes(file.read_bytes())
        copy.chmod(0o644)
    _claim(release.core, name, "ReadOnlyMany")


def shared_claim(release: Release, name: str) -> None:
    """An empty claim that all pods may write."""
    _volume(release.core, release.folder, name)
    _claim(release.core, name, "ReadWriteMany")


def _claim(core: client.CoreV1Api, name: str, mode: str) -> None:
    spec = {
        "accessModes": [mode],
        "storageClassName": _STORAGE,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    body = {"metadata": {"name": name}, "spec": spec}
    core.create_namespaced_persistent_volume_claim(NAMESPACE, body)


def manifest(model: Path, seed: str) -> SimulatorManifest:
    """The manifest of a model that our CPU image serves; another seed gives another simulator."""
    recipe = SimulateRecipe.model_validate(
        {"sampling": {"max_tokens": 256}, "domains": {"shell": f"A world, {seed}."}}
    )
    return pin(
        ArtifactManifest.of(model),
        recipe,
        EngineRecipe(kind="vllm"),
        context_tokens=_CONTEXT_TOKENS,
        image=images.built("engine-cpu").digest,
    )


def simulator(name: str, simulator_manifest: SimulatorManifest, **serving: object) -> Object:
    """A Simulator as a user writes it."""
    defaults = {
        "image": "localhost/agentworld/engine-cpu",
        "weights": {"claim": "weights"},
        "resources": {
            "requests": {"cpu": "50m", "memory": "256Mi"},
            "limits": {"cpu": "4", "memory": "8Gi"},
        },
        "startupSeconds": 600,
    }
    identity = {"manifest": json.loads(simulator_manifest.canonical)}
    spec = {"identity": identity, "serving": defaults | serving}
    return {**type_fields("Simulator"), "metadata": {"name": name}, "spec": spec}


class Agents:
    """Agents that open runs by an alias and play continuously; a failure is one that retries did
    not fix.
    """

    def __init__(self, url: str, alias: str) -> None:
        self.steps = 0
        self.runs: dict[str, Digest] = {}
        self.failures: list[str] = []
        self._url, self._alias = url, alias
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def open(self) -> None:
        """Starts another agent with its own run; returns after its first step."""
        before = self.steps
        thread = threading.Thread(target=lambda: asyncio.run(self._play()))
        thread.start()
        self._threads.append(thread)
        wait_for(lambda: self.failures or self.steps > before, _SECONDS)

    def played(self, steps: int) -> None:
        """Waits until `steps` more steps were answered."""
        before = self.steps
        wait_for(lambda: self.failures or self.steps >= before + steps, _SECONDS)

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(_SECONDS)

    async def _play(self) -> None:
        player = SimulatorClient(self._url, credential=AGENT, attempts=200, timeout_seconds=60)
        try:
            opening = RunOpening(
                agent="agent", starting_weights=records.digest("weights"), simulator=self._alias
            )
            run = await player.open_run(opening)
            self.runs[run.id] = run.simulator
            while not self._over.is_set():
                episode = await player.begin(EpisodeOpening(run=run.id))
                for number in range(3):
                    await player.step(episode.episode, f"echo {number}")
                    self.steps += 1
                await player.end(episode.episode)
            await player.close_run(records.digest("weights made"))
        except SimulatorError as error:
            self.failures.append(f"{type(error).__name__}: {error}")
        finally:
            await player.close()


def drain(release: Release, node: str) -> None:
    """Drains a node as an administrator does: no pod is left in the namespace."""
    release.core.patch_node(node, {"spec": {"unschedulable": True}})

    def is_empty() -> bool:
        pod_list = release.core.list_namespaced_pod(
            NAMESPACE, field_selector=f"spec.nodeName={node}"
        ).items
        for pod in pod_list:
            _evict(release.core, pod.metadata.name)
        return not pod_list

    wait_for(is_empty, _SECONDS)


def _evict(core: client.CoreV1Api, pod: str) -> None:
    try:
        core.create_namespaced_pod_eviction(pod, NAMESPACE, {"metadata": {"name": pod}})
    except ApiException as error:
        if error.status not in (404, 429):  # deleted, or still protected by a budget
            raise
