"""Decisions on admission that need the cluster and the service: asked here, judged in policy."""

import asyncio

from agentworld.errors import ClusterError, InputError, SimulatorError
from agentworld.records.alias import Use
from agentworld_operator.cluster import Cluster
from agentworld_operator.policy.admission import Asked, Denied, deleted, spec_of_alias, written
from agentworld_operator.policy.alias import is_told, move, resolved
from agentworld_operator.policy.identity import Refused
from agentworld_operator.resources.alias import AliasSpec
from agentworld_operator.service import Service
from agentworld_pipelines.api_server import Object

_NO_RIGHTS = (401, 403)


class Admitting:
    """What becomes of each request for one of our resources in one namespace."""

    def __init__(self, cluster: Cluster, service: Service) -> None:
        self._cluster = cluster
        self._service = service

    async def decide(self, asked: Asked) -> Denied | None:
        """Null lets it in. What cannot be found out keeps it out."""
        if asked.namespace != self._cluster.namespace:
            return Denied(f"this operator is of the namespace {self._cluster.namespace}")
        try:
            match asked.kind.kind, asked.operation:
                case "Simulator", "DELETE":
                    return await self._delete_simulator(asked)
                case "Simulator", "CREATE" | "UPDATE":
                    return written(asked)
                case "SimulatorAlias", "DELETE":
                    return await self._end_alias(asked)
                case "SimulatorAlias", "CREATE" | "UPDATE":
                    return await self._move_alias(asked)
        except (ClusterError, SimulatorError) as error:
            return Denied(str(error), 503)
        return None

    async def _delete_simulator(self, asked: Asked) -> Denied | None:
        if await self._is_going():
            return None
        aliases = await asyncio.to_thread(self._cluster.all, "SimulatorAlias")
        return deleted(asked.about, aliases.objects, await self._use(asked))

    async def _use(self, asked: Asked) -> Use | None:
        digest = ((asked.old and asked.old.status) or {}).get("digest")
        try:
            return await self._service.use(digest) if digest else None
        except (SimulatorError, InputError):
            return None

    async def _move_alias(self, asked: Asked) -> Denied | None:
        if not asked.respecified:
            return None
        spec = spec_of_alias(asked)
        if isinstance(spec, Denied):
            return spec
        meaning = resolved(spec, (await self._simulators(spec)).get)
        if isinstance(meaning, Refused):
            return Denied(meaning.message, 422)
        wanted = move(spec, meaning, asked.user_info.username or "nobody")
        try:
            if is_told(await self._service.last(asked.about), wanted):
                return None
            dry = bool(asked.dry_run)
            await self._service.move(asked.about, wanted, asked.uid, dry_run=dry)
        except InputError as error:
            return Denied(str(error), 409)
        return None

    async def _simulators(self, spec: AliasSpec) -> dict[str, Object | None]:
        named = {spec.simulator} | ({spec.canary.simulator} if spec.canary else set())
        return {
            name: await asyncio.to_thread(self._cluster.get, "Simulator", name) for name in named
        }

    async def _end_alias(self, asked: Asked) -> Denied | None:
        """A namespace that goes is not kept by a service that is gone already."""
        by, dry = asked.user_info.username or "nobody", bool(asked.dry_run)
        try:
            await self._service.end(asked.about, by, asked.uid, dry_run=dry)
        except InputError:  # the ledger knows no such name
            return None
        except SimulatorError:
            if not await self._is_going():
                raise
        return None

    async def _is_going(self) -> bool:
        """Whether the namespace is; our own rights in it may be gone before all else is."""
        try:
            return await asyncio.to_thread(self._cluster.is_going)
        except ClusterError as error:
            if error.status in _NO_RIGHTS:
                return True
            raise
