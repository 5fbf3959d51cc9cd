"""The API of a cluster for a service of many simulators, without a server."""

import json
from collections import Counter
from threading import Event
from typing import Any

from agentworld.errors import ClusterError
from agentworld.records.simulator import SimulatorManifest
from make import records
from waiting import DEADLINE

Object = dict[str, Any]

STABLE, CANARY = records.manifest(control_text="stable"), records.manifest(control_text="canary")


def simulator(name: str, manifest: SimulatorManifest, *tenants: str, created: int = 1) -> Object:
    """A Simulator with the status that the operator sets."""
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": f"2026-01-{created:02}"},
        "spec": {
            "identity": {"manifest": json.loads(manifest.canonical)},
            "serving": {"tenants": list(tenants)},
        },
        "status": {"digest": manifest.digest},
    }


def refuse(resource: Object, message: str) -> None:
    """Sets the operator's status for a Simulator that it does not serve."""
    condition = {"type": "Verified", "status": "False", "message": message}
    resource["status"]["conditions"] = [condition]


class Cluster:
    """The responses of an API server, by path."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {
            "simulators/stable": simulator("stable", STABLE),
            "simulators/canary": simulator("canary", CANARY),
        }
        self.requests: Counter[str] = Counter()
        self.failing: ClusterError | None = None
        self.answers = Event()
        """Cleared to simulate an API server that hangs."""
        self.answers.set()

    def read(self, path: str) -> Object | None:
        self.requests[path] += 1
        self.answers.wait(DEADLINE)
        if self.failing:
            raise self.failing
        if path == "simulators":
            kind = "simulators/"
            return {"items": [resource for name, resource in self.objects.items() if kind in name]}
        return self.objects.get(path)

    def simulator(self, name: str = "stable") -> Object:
        return self.objects[f"simulators/{name}"]

    def change(self, name: str, *tenants: str) -> None:
        """Restricts a Simulator to these tenants."""
        self.simulator(name)["spec"]["serving"] = {"tenants": list(tenants)}

    def reads(self) -> Counter[str]:
        """The requests since the last call."""
        requests, self.requests = self.requests, Counter()
        return requests
