"""The simulators of a Kubernetes cluster, as its objects and the object store tell of them.

The cluster is asked when a run is opened, and when a simulator is needed whose manifest is not in
the object store yet. It is asked in no step: an engine is found by a name that is made of the
digest, and its manifest is kept, for good, under the digest.
"""

import asyncio
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from agentworld.errors import ClusterError, Conflict, NotFound
from agentworld.records.base import Digest, first_problem
from agentworld.records.simulator import SimulatorManifest
from agentworld.simulate.on_demand import Found
from agentworld.storage.folder import read_file
from agentworld.storage.objects import ObjectStore

Read = Callable[[str], dict[str, Any] | None]
"""From the path of an object, or of all of a kind, to what is there; null where nothing is."""

_SECONDS = (3.0, 10.0)
"""To connect, and to hear an answer."""
_NOT_FOUND = 404


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", frozen=True)


class _Reference(_Part):
    url: str


class _Identity(_Part):
    manifest: SimulatorManifest | None = None
    reference: _Reference | None = None


class _SimulatorSpec(_Part):
    identity: _Identity


class _Condition(_Part):
    type: str
    status: str
    message: str = ""


class _SimulatorStatus(_Part):
    digest: Digest | None = None
    conditions: tuple[_Condition, ...] = ()


class _Simulator(_Part):
    spec: _SimulatorSpec
    status: _SimulatorStatus = _SimulatorStatus()


class _Canary(_Part):
    simulator: str
    percent: int


class _AliasSpec(_Part):
    simulator: str
    canary: _Canary | None = None


class _Alias(_Part):
    spec: _AliasSpec


_Kind = TypeVar("_Kind", bound=BaseModel)


class ClusterSimulators:
    """What there is in one namespace."""

    def __init__(
        self,
        read: Read,
        objects: ObjectStore,
        connect: Callable[[SimulatorManifest], Found],
        draw: Callable[[], int] = lambda: secrets.randbelow(100),
    ) -> None:
        """`draw` says of each run, from 0 to 99, on which side of a canary's percentage it is."""
        self._read = read
        self._objects = objects
        self._connect = connect
        self._draw = draw

    async def find(self, simulator: Digest) -> Found:
        """A simulator by its digest; raises NotFound, ClusterError or StoreError."""
        return self._connect(await asyncio.to_thread(self._manifest, simulator))

    async def resolve(self, alias: str) -> Digest:
        """What an alias means for one run; raises NotFound, Conflict or ClusterError."""
        return await asyncio.to_thread(self._resolve, alias)

    def _manifest(self, simulator: Digest) -> SimulatorManifest:
        try:
            return SimulatorManifest.model_validate_json(self._objects.get(simulator))
        except NotFound:
            manifest = self._of_cluster(simulator)
            self._objects.put(manifest.canonical)
            return manifest

    def _of_cluster(self, simulator: Digest) -> SimulatorManifest:
        listed = self._read("simulators") or {"items": []}
        for item in listed["items"]:
            if (item.get("status") or {}).get("digest") == simulator:
                return _manifest_of(_understood(_Simulator, item))
        raise NotFound(f"no Simulator has the digest {simulator}; create one of its manifest")

    def _resolve(self, alias: str) -> Digest:
        found = self._read(f"simulatoraliases/{quote(alias, safe='')}")
        if found is None:
            raise NotFound(f"there is no alias {alias!r}; create it, or give a digest")
        spec = _understood(_Alias, found).spec
        canary = spec.canary
        is_canary = canary is not None and self._draw() < canary.percent
        return self._digest(canary.simulator if canary and is_canary else spec.simulator)

    def _digest(self, name: str) -> Digest:
        found = self._read(f"simulators/{quote(name, safe='')}")
        if found is None:
            raise NotFound(f"there is no Simulator {name}; create it, or move the alias")
        status = _understood(_Simulator, found).status
        refused = [each for each in status.conditions if each.type == "Verified"]
        if refused and refused[0].status == "False":
            raise Conflict(f"Simulator {name} is not what was pinned: {refused[0].message}")
        if status.digest is None:
            raise ClusterError(f"the operator has not looked at Simulator {name} yet; try again")
        return status.digest


def _manifest_of(found: _Simulator) -> SimulatorManifest:
    identity = found.spec.identity
    if identity.manifest:
        return identity.manifest
    if identity.reference is None:
        raise Conflict("a Simulator has neither a manifest nor a reference to one; create it anew")
    return SimulatorManifest.model_validate_json(read_file(identity.reference.url))


def _understood(kind: type[_Kind], found: dict[str, Any]) -> _Kind:
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        name = found.get("metadata", {}).get("name")
        raise Conflict(f"{name} in the cluster is wrong at {first_problem(error)}") from error


def cluster_reader(namespace: str, kubeconfig: Path | None = None) -> Read:
    """Reads with the pod's own service account, or as a kubeconfig says; blocks."""
    # It takes a second to import, and only a service on a cluster needs it.
    from kubernetes import client, config  # noqa: PLC0415
    from kubernetes.client.exceptions import ApiException  # noqa: PLC0415
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    told = client.Configuration()
    told.retries = 0
    if kubeconfig:
        config.load_kube_config(str(kubeconfig), client_configuration=told)
    else:
        config.load_incluster_config(client_configuration=told)
    api = client.ApiClient(told)

    def read(path: str) -> dict[str, Any] | None:
        try:
            answer = api.call_api(
                f"/apis/agentworld.dev/v1alpha1/namespaces/{namespace}/{path}",
                "GET",
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=_SECONDS,
            )
            return cast("dict[str, Any]", json.loads(answer.data))
        except ApiException as error:
            if error.status == _NOT_FOUND:
                return None
            raise ClusterError(
                f"the cluster does not tell of {path}: {error.reason}", status=error.status or 0
            ) from error
        except (HTTPError, OSError) as error:
            raise ClusterError(
                f"the cluster cannot be asked for {path} ({type(error).__name__}); try again"
            ) from error

    return read
