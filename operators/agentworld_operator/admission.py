"""Admission decisions that need the cluster and the service; `policy` judges what they return."""

import asyncio

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import Cluster
from agentworld.cluster.records.alias import AliasSpec
from agentworld.errors import ClusterError, InputError, SimulatorError
from agentworld_operator.policy.admission import (
    AdmissionRequest,
    Denial,
    check_deletion,
    check_schedule,
    check_simulator,
    digest_in_use,
    spec_of_alias,
)
from agentworld_operator.policy.alias import is_recorded, key, move, resolve
from agentworld_operator.policy.problem import Problem
from agentworld_operator.service import Service

_NO_RIGHTS = (401, 403)


class Admission:
    """Decides on each admission request for our resources in one namespace."""

    def __init__(self, cluster: Cluster, service: Service) -> None:
        self._cluster = cluster
        self._service = service

    async def decide(self, request: AdmissionRequest) -> Denial | None:
        """Null admits the request. If a fact cannot be determined, the request is refused."""
        if request.namespace != self._cluster.namespace:
            return Denial(f"this operator is of the namespace {self._cluster.namespace}")
        try:
            match request.kind.kind, request.operation:
                case "Simulator", "DELETE":
                    return await self._delete_simulator(request)
                case "Simulator", "CREATE" | "UPDATE":
                    return check_simulator(request)
                case "TrainingSchedule", "CREATE" | "UPDATE":
                    return check_schedule(request)
                case "SimulatorAlias", "DELETE":
                    return await self._end_alias(request)
                case "SimulatorAlias", "CREATE" | "UPDATE":
                    return await self._move_alias(request)
        except (ClusterError, SimulatorError) as error:
            return Denial(str(error), 503)
        return None

    async def _delete_simulator(self, request: AdmissionRequest) -> Denial | None:
        """A deletion with its namespace is not blocked if the service is already gone."""
        assert request.old
        digest = digest_in_use({"status": request.old.status})
        if digest is None or await self._is_terminating():
            return None
        try:
            return check_deletion(request.object_name, await self._service.use(digest))
        except InputError:  # not our digest
            return None

    async def _move_alias(self, request: AdmissionRequest) -> Denial | None:
        if not request.is_spec_changed:
            return None
        spec = spec_of_alias(request)
        if isinstance(spec, Denial):
            return spec
        if request.operation == "CREATE" and await self._exists(request.object_name):
            message = f"there is a SimulatorAlias {request.object_name} already; change that one"
            return Denial(message, 409)
        meaning = resolve(spec, (await self._simulators(spec)).get)
        if isinstance(meaning, Problem):
            return Denial(meaning.message, 422)
        name, by = request.object_name, request.user_info.username
        alias_move = move(spec, meaning, by or "nobody", request.object_request)
        try:
            last = await self._service.last(name)
            if is_recorded(last, alias_move):
                return None
            own_key = key(request.object_request, alias_move, last)
            await self._service.move(name, alias_move, own_key, dry_run=bool(request.dry_run))
        except InputError as error:
            return Denial(str(error), 409)
        return None

    async def _exists(self, alias: str) -> bool:
        """The API server checks this only later, and the move would already be recorded."""
        fields = f"metadata.name={alias}"
        listing = await asyncio.to_thread(self._cluster.all, "SimulatorAlias", fields=fields)
        return bool(listing.objects)

    async def _simulators(self, spec: AliasSpec) -> dict[str, Object | None]:
        names = {spec.simulator} | ({spec.canary.simulator} if spec.canary else set())
        return {
            name: await asyncio.to_thread(self._cluster.get, "Simulator", name) for name in names
        }

    async def _end_alias(self, request: AdmissionRequest) -> Denial | None:
        """The deletion of a namespace is not blocked if the service is already gone."""
        name, by = request.object_name, request.user_info.username or "nobody"
        object_request, dry = request.object_request, bool(request.dry_run)
        try:
            last = await self._service.last(name)
            if last is None or last.request is None:  # it is unknown, or a command set it
                return None
            own_key = key(object_request, None, last)
            await self._service.end(name, by, own_key, object_request, dry_run=dry)
        except InputError:  # not one of our aliases
            return None
        except SimulatorError:
            if not await self._is_terminating():
                raise
        return None

    async def _is_terminating(self) -> bool:
        """Whether the namespace is being deleted; our own rights in it may be removed first."""
        try:
            return await asyncio.to_thread(self._cluster.is_terminating)
        except ClusterError as error:
            if error.status in _NO_RIGHTS:
                return True
            raise
