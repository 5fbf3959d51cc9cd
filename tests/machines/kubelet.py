"""Simulates a kubelet on a cluster without nodes: sets pods' status to running.

It writes only the fields that a node writes.
"""

import asyncio
from contextlib import suppress

from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.cluster.names import DIGEST_LABEL
from agentworld.errors import ClusterError
from make.operator import Namespace, Object

_EVERY_SECONDS = 0.3


class Kubelet:
    """The kubelet of all pods of engines in a namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self._namespace = namespace

    async def run(self) -> None:
        """Works until it is canceled."""
        while True:
            with suppress(ClusterError):  # the API server is down, or was faster
                await asyncio.to_thread(self._round)
            await asyncio.sleep(_EVERY_SECONDS)

    def _round(self) -> None:
        for pod in self._namespace.all("Pod", DIGEST_LABEL).objects:
            if not is_running(pod) and "deletionTimestamp" not in pod["metadata"]:
                path = API_RESOURCES["Pod"].path(self._namespace.namespace, pod["metadata"]["name"])
                self._namespace.call("PATCH", f"{path}/status", {"status": _running(pod)})


def is_running(pod: Object) -> bool:
    """Whether its containers run."""
    return bool(pod["status"].get("containerStatuses"))


def _running(pod: Object) -> Object:
    init_state = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    inits = [_status(item, init_state) for item in pod["spec"]["initContainers"]]
    containers = [_status(item, {"running": {}}) for item in pod["spec"]["containers"]]
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "phase": "Running",
        "conditions": conditions,
        "initContainerStatuses": inits,
        "containerStatuses": containers,
    }


def _status(container: Object, state: Object) -> Object:
    status = {"name": container["name"], "image": container["image"], "state": state}
    return status | {"imageID": "", "restartCount": 0, "ready": True}
