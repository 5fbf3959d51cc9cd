"""The simulators of a Kubernetes cluster, as its objects and the object store tell of them.

The cluster is asked when a run is opened, and when a simulator is needed whose manifest is not in
the object store yet. It is asked in no step: an engine is found by a name that is made of the
digest, and its manifest is kept, for good, under the digest.
"""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TypeVar, cast
from urllib.parse import quote

from agentworld.engine.accelerators import UNKNOWN
from agentworld.errors import ClusterError, Conflict, NotFound
from agentworld.records.alias import gets_canary
from agentworld.records.base import Digest
from agentworld.records.simulator import SimulatorManifest
from agentworld.serving.simulators.base import Wanted
from agentworld.serving.simulators.cluster_objects import (
    Object,
    SimulatorAlias,
    SimulatorObject,
    check_opens,
    of_digest,
    understood,
)
from agentworld.serving.simulators.many import Found
from agentworld.storage.folder import read_file
from agentworld.storage.objects import ObjectStore

Read = Callable[[str], Object | None]
"""From the path of an object, or of all of a kind, to what is there; null where nothing is."""

_SECONDS = (3.0, 10.0)
"""To connect, and to hear an answer."""
_MOST_ASKING = 8
_NOT_FOUND = 404

_Argument = TypeVar("_Argument")
_Answer = TypeVar("_Answer")


class ClusterSimulators:
    """What there is in one namespace."""

    def __init__(
        self, read: Read, objects: ObjectStore, connect: Callable[[SimulatorManifest], Found]
    ) -> None:
        self._read = read
        self._objects = objects
        self._connect = connect
        self._names: dict[Digest, str] = {}
        """Of the objects that simulators were found in: a list of all of them is megabytes."""
        self._accelerators: dict[Digest, tuple[str, ...]] = {}
        self._listing = Lock()
        # Of its own: steps write with the others, and wait for no API server that hangs.
        self._asking = ThreadPoolExecutor(_MOST_ASKING, "cluster")

    async def find(self, simulator: Digest) -> Found:
        """A simulator by its digest, also of an object that is gone; who may open runs with it is
        not asked. Raises NotFound, ClusterError or StoreError.
        """
        try:
            kept = await asyncio.to_thread(self._objects.get, simulator)
        except NotFound:
            kept = await self._ask(self._of_cluster, simulator)
        found = self._connect(SimulatorManifest.model_validate_json(kept))
        return found._replace(accelerators=partial(self._accelerators_of, simulator))

    def _accelerators_of(self, simulator: Digest) -> tuple[str, ...]:
        """As the operator said when a run was opened here last; a step never asks."""
        return self._accelerators.get(simulator) or UNKNOWN

    async def resolve(self, wanted: Wanted) -> Digest:
        """What a run is opened with, as the objects say now.

        Raises AccessError, NotFound, Conflict or ClusterError.
        """
        return await self._ask(self._resolve, wanted)

    async def _ask(self, question: Callable[[_Argument], _Answer], about: _Argument) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(self._asking, question, about)

    def _of_cluster(self, simulator: Digest) -> bytes:
        manifest = _manifest_of(self._found(simulator))
        self._objects.put(manifest.canonical)
        return manifest.canonical

    def _resolve(self, wanted: Wanted) -> Digest:
        if wanted.is_by_digest:
            return check_opens(self._found(wanted.simulator), wanted.tenant)
        found = self._meant(wanted)
        digest = check_opens(found, wanted.tenant)
        self._names[digest] = found.metadata.name
        return digest

    def _meant(self, wanted: Wanted) -> SimulatorObject:
        alias = wanted.simulator
        found = self._read(f"simulatoraliases/{quote(alias, safe='')}")
        if found is None:
            raise NotFound(f"there is no alias {alias!r}; create it, or give a digest")
        spec = understood(SimulatorAlias, found).spec
        run, canary = wanted.run, spec.canary
        if canary and run is not None and gets_canary(alias, run, canary.percent):
            tried = self._named(canary.simulator)
            if tried.admits(wanted.tenant):
                return tried
            # Of a tenant that it is not for, no run fails because others try it.
        return self._named(spec.simulator)

    def _named(self, name: str) -> SimulatorObject:
        if found := self._object(name):
            return found
        raise NotFound(f"there is no Simulator {name}; create it, or move the alias")

    def _found(self, simulator: Digest) -> SimulatorObject:
        """The object of a digest; all are listed where nobody knows which it is."""
        known = self._names.get(simulator)
        if found := self._known(simulator):
            return found
        with self._listing:  # of many who ask at once for a new one, one lists
            if self._names.get(simulator) != known and (found := self._known(simulator)):
                return found
            found = of_digest((self._read("simulators") or {"items": []})["items"], simulator)
            if found is None:
                raise NotFound(
                    f"no Simulator has the digest {simulator}, so it opens no run; create one of"
                    " its manifest, or name another simulator"
                )
            self._names[simulator] = found.metadata.name
            return self._learned(found)

    def _known(self, simulator: Digest) -> SimulatorObject | None:
        """The object that it was found in, where that is still it, and no rival is served."""
        name = self._names.get(simulator)
        found = self._object(name) if name else None
        still = found and found.status.digest == simulator and not found.refusal
        return found if still else None

    def _object(self, name: str) -> SimulatorObject | None:
        read = self._read(f"simulators/{quote(name, safe='')}")
        found = understood(SimulatorObject, read) if read else None
        return None if found is None or found.is_going else self._learned(found)

    def _learned(self, found: SimulatorObject) -> SimulatorObject:
        if found.status.digest:
            self._accelerators[found.status.digest] = found.status.accelerators
        return found


def _manifest_of(found: SimulatorObject) -> SimulatorManifest:
    identity = found.spec.identity
    if identity.manifest:
        return identity.manifest
    if identity.reference is None:
        raise Conflict("a Simulator has neither a manifest nor a reference to one; create it anew")
    return SimulatorManifest.model_validate_json(read_file(identity.reference.url))


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

    def read(path: str) -> Object | None:
        try:
            answer = api.call_api(
                f"/apis/agentworld.dev/v1alpha1/namespaces/{namespace}/{path}",
                "GET",
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
                _request_timeout=_SECONDS,
            )
            return cast("Object", json.loads(answer.data))
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
