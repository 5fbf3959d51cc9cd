"""Reconciles SimulatorAliases with the ledger: whether each move was recorded, and the current
target. The webhook judges and records a move before the object changes. The reconciler never
records a spec that the webhook did not see. It records two things, when no request can be in
progress any more: that an object was deleted, and that the cluster kept an object although a later
request was recorded.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pydantic import ValidationError

from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import Cluster
from agentworld.cluster.records.alias import AliasSpec, AliasStatus
from agentworld.errors import InputError, SimulatorError
from agentworld.records.base import first_problem
from agentworld.records.statements.alias import AliasChange, Meaning
from agentworld_operator.cache import Cache
from agentworld_operator.controllers.controller import Outcome
from agentworld_operator.policy.alias import (
    OPERATOR_ACTOR,
    AliasState,
    Comparison,
    aliases_of,
    build_return_move,
    build_status,
    key,
    recorded_condition,
    request_of,
    resolve,
)
from agentworld_operator.policy.conditions import ConditionState
from agentworld_operator.policy.problem import Problem
from agentworld_operator.service import Service
from agentworld_operator.settings import OperatorSettings


class _Difference(NamedTuple):
    """A difference between the ledger and the cluster, and since when it has been seen."""

    last: AliasChange | None
    request: str | None
    """The id of the object's spec, by `request_of`; null if there is no object."""
    since: float


class AliasReconciler:
    """Compares each alias with the ledger. A restart only restarts the waiting time."""

    kind = "SimulatorAlias"
    status_type = AliasStatus

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        service: Service,
        settings: OperatorSettings,
        *,
        settle_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        """`settle_seconds` is the longest time between a move's record and its object's change."""
        self._cluster = cluster
        self._cache = cache
        self._service = service
        self._settings = settings
        self._settle_seconds = settle_seconds
        self._clock = clock
        self._differences: dict[str, _Difference] = {}

    def affected_names(self, kind: str, resource: Object) -> Iterable[str]:
        """An alias itself, and all aliases that name a Simulator."""
        name = resource["metadata"]["name"]
        if kind == "Simulator":
            return aliases_of(name, self._cache.all(self.kind))
        return [name] if kind == self.kind else []

    async def find_names_without_object(self) -> list[str]:
        """Names with a target that objects set, and that no object has now."""
        newest = {change.alias: change for change in await self._service.histories()}
        return [
            name
            for name, change in newest.items()
            if _is_of_object(change) and self._cache.get(self.kind, name) is None
        ]

    async def reconcile(self, alias: Object, before: AliasStatus, now: str) -> Outcome[AliasStatus]:
        """Reports the ledger's record of its name, and corrects it if necessary."""
        name, settings = alias["metadata"]["name"], self._settings
        comparison, condition = None, None
        try:
            comparison = await self._compare(name, request_of(alias))
        except SimulatorError as error:
            condition = ConditionState("Recorded", "Unknown", "ServiceUnavailable", str(error))
        except InputError as error:
            condition = ConditionState("Recorded", "False", "Refused", str(error))
        recorded = recorded_condition(comparison) if comparison else condition
        assert recorded
        generation, spec_meaning = alias["metadata"]["generation"], self._resolve(alias)
        status = build_status(
            AliasState(generation, before, spec_meaning, comparison, recorded), now
        )
        differs = name in self._differences
        look_again_seconds = settings.ask_seconds if differs else settings.look_seconds
        return Outcome(status, look_again_seconds=look_again_seconds)

    async def clean_up(self, name: str) -> Outcome[AliasStatus]:
        """Ends an alias whose object was deleted; an alias of a command has no object."""
        last = await self._service.last(name)
        if last and last.request and _is_of_object(last):
            if not await self._is_settled(name, last, None):
                return Outcome(look_again_seconds=self._settings.ask_seconds)
            own_key = key(last.request, None, last)
            await self._service.end(name, OPERATOR_ACTOR, own_key, last.request)
        self._differences.pop(name, None)
        return Outcome()

    def _resolve(self, alias: Object) -> Meaning | Problem:
        try:
            spec = AliasSpec.model_validate(alias["spec"])
        except ValidationError as error:
            return Problem("Invalid", f"spec.{first_problem(error)}")
        return resolve(spec, lambda name: self._cache.get("Simulator", name))

    async def _compare(self, name: str, request: str) -> Comparison:
        comparison = Comparison(request, await self._service.history(name))
        if change_to_restore := comparison.change_to_restore:
            if not await self._is_settled(name, comparison.last, request):
                return comparison
            move = build_return_move(change_to_restore)
            change = await self._service.move(name, move, key(request, move, comparison.last))
            comparison = Comparison(request, [*comparison.history, change])
        self._differences.pop(name, None)
        return comparison

    async def _is_settled(self, name: str, last: AliasChange | None, request: str | None) -> bool:
        """Whether the same difference has lasted so long that no request can be in progress."""
        before, now = self._differences.get(name), self._clock()
        if before is None or before[:2] != (last, request):
            before = self._differences[name] = _Difference(last, request, now)
        if now - before.since < self._settle_seconds:
            return False
        # A watch can miss events for so long, so the objects are listed again.
        listing = await asyncio.to_thread(self._cluster.all, self.kind)
        requests = {
            alias["metadata"]["name"]: request_of(alias)
            for alias in listing.objects
            if "deletionTimestamp" not in alias["metadata"]
        }
        return requests.get(name) == request


def _is_of_object(change: AliasChange) -> bool:
    return not change.ended and change.request is not None
