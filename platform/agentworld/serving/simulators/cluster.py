"""The simulators of a Kubernetes cluster, from its objects and the object store.

Aliases are resolved by the ledger only, never by an object. The cluster's API is called when a run
is opened, and when the object store lacks the manifest of a run's simulator. No step calls it: an
engine's host name is derived from the digest, and its manifest is stored under the digest.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TypeVar
from urllib.parse import quote

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import ApiServer, configuration
from agentworld.cluster.names import API_VERSION
from agentworld.cluster.records.view import SimulatorView, of_digest, parse_object
from agentworld.engine.accelerators import UNKNOWN
from agentworld.errors import AccessError, ClusterError, Conflict, NotFound, UnknownPath
from agentworld.ledger import Ledger
from agentworld.records.base import Digest
from agentworld.records.simulator import SimulatorManifest
from agentworld.records.statements.alias import gets_canary
from agentworld.serving.simulators.base import ConnectedSimulator, SimulatorRequest
from agentworld.storage.folder import read_file
from agentworld.storage.objects import ObjectStore

Read = Callable[[str], Object | None]
"""Reads the object, or the list of objects, at a path; null if it does not exist."""

_MOST_ASKING = 8

_Argument = TypeVar("_Argument")
_Answer = TypeVar("_Answer")


class ClusterSimulators:
    """The simulators of one namespace."""

    single: ConnectedSimulator | None = None

    def __init__(
        self,
        read: Read,
        objects: ObjectStore,
        ledger: Ledger,
        connect: Callable[[SimulatorManifest], ConnectedSimulator],
    ) -> None:
        self._read = read
        self._objects = objects
        self._ledger = ledger
        self._connect = connect
        self._names: dict[Digest, str] = {}
        """The names of the objects in which simulators were found, because a list of all objects
        has megabytes.
        """
        self._accelerators: dict[Digest, tuple[str, ...]] = {}
        self._listing = Lock()
        # a separate pool: steps use the other one, and must not wait for an API server that hangs
        self._executor = ThreadPoolExecutor(_MOST_ASKING, "cluster")

    async def find(self, simulator: Digest) -> ConnectedSimulator:
        """A simulator by its digest, also one that has runs and no object any more; does not check
        who may open runs. Raises NotFound, ClusterError or StoreError.
        """
        manifest_json = await asyncio.to_thread(self._load_stored, simulator)
        if manifest_json is None:
            manifest_json = await self._ask(self._of_cluster, simulator)
        connection = self._connect(SimulatorManifest.model_validate_json(manifest_json))
        return connection._replace(accelerators=partial(self._accelerators_of, simulator))

    def _accelerators_of(self, simulator: Digest) -> tuple[str, ...]:
        """The value that the operator wrote when a run was last opened here; a step never asks."""
        return self._accelerators.get(simulator) or UNKNOWN

    async def resolve(self, request: SimulatorRequest) -> Digest:
        """The simulator of a new run: an alias is resolved by the ledger, and a Simulator object
        must serve the result and admit the tenant.

        Raises AccessError, NotFound, Conflict or ClusterError.
        """
        return await self._ask(self._resolve, request)

    async def _ask(self, question: Callable[[_Argument], _Answer], argument: _Argument) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(self._executor, question, argument)

    def _load_stored(self, simulator: Digest) -> bytes | None:
        """The stored manifest of a simulator with runs, or null."""
        # Agents store texts in the same object store, so only a run proves that it is a manifest.
        if self._ledger.has_run_of(simulator):
            with suppress(NotFound):
                return self._objects.get(simulator)
        return None

    def _of_cluster(self, simulator: Digest) -> bytes:
        manifest = _manifest_of(self._find_object(simulator))
        self._objects.put(manifest.canonical)
        return manifest.canonical

    def _resolve(self, request: SimulatorRequest) -> Digest:
        digest = request.simulator if request.is_by_digest else self._resolve_alias(request)
        check_opens(self._find_object(digest), request.tenant)
        return digest

    def _resolve_alias(self, request: SimulatorRequest) -> Digest:
        alias, run = request.simulator, request.run
        simulator, canary = self._ledger.aliases.meaning(alias)
        if (
            canary
            and run is not None
            and gets_canary(alias, run, canary.percent)
            # A run of a tenant that the canary does not admit gets the other simulator.
            and self._find_object(canary.simulator).admits(request.tenant)
        ):
            return canary.simulator
        return simulator

    def _find_object(self, simulator: Digest) -> SimulatorView:
        """The object of a digest; lists all objects if its name is unknown."""
        name = self._names.get(simulator)
        if candidate := self._load_from_cache(simulator):
            return candidate
        with self._listing:  # concurrent requests for a new simulator share one list
            if self._names.get(simulator) != name and (
                candidate := self._load_from_cache(simulator)
            ):
                return candidate
            candidate = of_digest((self._read("simulators") or {"items": []})["items"], simulator)
            if candidate is None:
                raise NotFound(
                    f"no Simulator has the digest {simulator}, so it opens no run; create one of"
                    " its manifest, or name another simulator"
                )
            self._names[simulator] = candidate.metadata.name
            return self._remember(candidate)

    def _load_from_cache(self, simulator: Digest) -> SimulatorView | None:
        """The object in which it was found before, if it still has this digest and no other object
        serves it.
        """
        name = self._names.get(simulator)
        candidate = self._load_object(name) if name else None
        is_current = candidate and candidate.status.digest == simulator and not candidate.refusal
        return candidate if is_current else None

    def _load_object(self, name: str) -> SimulatorView | None:
        fields = self._read(f"simulators/{quote(name, safe='')}")
        simulator = parse_object(SimulatorView, fields) if fields else None
        return None if simulator is None or simulator.is_terminating else self._remember(simulator)

    def _remember(self, simulator: SimulatorView) -> SimulatorView:
        if simulator.status.digest:
            self._accelerators[simulator.status.digest] = simulator.status.accelerators
        return simulator


def _manifest_of(simulator: SimulatorView) -> SimulatorManifest:
    identity = simulator.spec.identity
    if identity.manifest:
        return identity.manifest
    if identity.reference is None:
        raise Conflict("a Simulator has neither a manifest nor a reference to one; create it again")
    return SimulatorManifest.model_validate_json(read_file(identity.reference.url))


def check_opens(simulator: SimulatorView, tenant: str) -> None:
    """Raises AccessError if this tenant may not open runs, and Conflict if no tenant may."""
    name = simulator.metadata.name
    if not simulator.admits(tenant):
        raise AccessError(
            f"tenant {tenant} may open no run with Simulator {name}; have {tenant} added to its"
            " spec.serving.tenants, or name another simulator",
            kind="forbidden",
        )
    if simulator.refusal:
        raise Conflict(f"Simulator {name} is not served: {simulator.refusal}")


def cluster_reader(namespace: str, kubeconfig: Path | None = None) -> Read:
    """Reads with the pod's own service account, or by a kubeconfig; blocks."""
    server = ApiServer(configuration(kubeconfig))

    def read(path: str) -> Object | None:
        try:
            return server.find(f"/apis/{API_VERSION}/namespaces/{namespace}/{path}")
        except UnknownPath as error:  # the API server has just started
            raise ClusterError(f"the cluster does not serve {path} yet; try again") from error
        except ClusterError as error:
            # Callers do not see the API server's message, which names our account.
            reason = f"status {error.status}" if error.status else "it does not answer"
            raise ClusterError(
                f"the cluster cannot be asked for {path} ({reason}); try again", status=error.status
            ) from error

    return read
