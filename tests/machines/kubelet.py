"""What a kubelet would do here, where there is no node: pods come to run, and Secrets are mounted.

It writes what a node writes, and nothing else.
"""

import asyncio
import base64
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.cluster.names import DIGEST_LABEL
from agentworld.errors import ClusterError
from make.operator import Namespace, Object

_EVERY_SECONDS = 0.3
_SECRET = "agentworld-webhook"


class Kubelet:
    """Of all pods of engines in a namespace."""

    def __init__(self, namespace: Namespace, mounted: Sequence[Path]) -> None:
        """`mounted` are the folders at which the webhook's Secret is."""
        self._namespace = namespace
        self._mounted = mounted

    async def run(self) -> None:
        """Works until it is cancelled."""
        while True:
            with suppress(ClusterError):  # the API server is gone, or was faster
                await asyncio.to_thread(self._round)
            await asyncio.sleep(_EVERY_SECONDS)

    def _round(self) -> None:
        self._mount()
        for pod in self._namespace.all("Pod", DIGEST_LABEL).objects:
            if not is_running(pod) and "deletionTimestamp" not in pod["metadata"]:
                path = API_RESOURCES["Pod"].path(self._namespace.namespace, pod["metadata"]["name"])
                self._namespace.call("PATCH", f"{path}/status", {"status": _running(pod)})

    def _mount(self) -> None:
        found = self._namespace.get("Secret", _SECRET)
        for folder in self._mounted:
            for name, content in ((found or {}).get("data") or {}).items():
                data = base64.b64decode(content)
                path = folder / name
                if not path.exists() or path.read_bytes() != data:
                    (folder / "draft").write_bytes(data)
                    (folder / "draft").rename(path)


def is_running(pod: Object) -> bool:
    """Whether its containers do."""
    return bool(pod["status"].get("containerStatuses"))


def _running(pod: Object) -> Object:
    verified = {"terminated": {"exitCode": 0, "reason": "Completed"}}
    inits = [_status(each, verified) for each in pod["spec"]["initContainers"]]
    own = [_status(each, {"running": {}}) for each in pod["spec"]["containers"]]
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "phase": "Running",
        "conditions": ready,
        "initContainerStatuses": inits,
        "containerStatuses": own,
    }


def _status(container: Object, state: Object) -> Object:
    told = {"name": container["name"], "image": container["image"], "state": state}
    return told | {"imageID": "", "restartCount": 0, "ready": True}
