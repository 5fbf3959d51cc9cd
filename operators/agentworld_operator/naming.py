"""SimulatorAliases at work: what each means now, and whether the ledger says the same.

The webhook has a move judged and recorded before it is so. What the ledger does not know all the
same is told to it as found, once nothing can be on its way any more.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import ValidationError

from agentworld.errors import InputError, SimulatorError
from agentworld.records.alias import AliasChange, Meaning
from agentworld.records.base import digest_json, first_problem
from agentworld_operator.cluster import Cluster
from agentworld_operator.policy.admission import naming
from agentworld_operator.policy.alias import (
    BYPASS_ACTOR,
    AliasState,
    build_status,
    bypass_move,
    recorded,
    resolved,
    settling,
)
from agentworld_operator.policy.conditions import ConditionState, timestamp
from agentworld_operator.policy.identity import Refused
from agentworld_operator.resources.alias import AliasSpec, AliasStatus
from agentworld_operator.service import Service
from agentworld_operator.status import write_status
from agentworld_operator.watched import Cache
from agentworld_operator.work import WorkQueue
from agentworld_pipelines.api_server import Object

_KIND = "SimulatorAlias"
_WORKERS = 2


class _Difference(NamedTuple):
    """Between the ledger and the cluster, and since when it is seen so."""

    last: AliasChange | None
    meaning: Meaning | None
    since: float


class Names:
    """All aliases of the namespace. What it remembers can be lost: it only makes it wait anew."""

    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        service: Service,
        *,
        settle_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self._cluster = cluster
        self._cache = cache
        self._service = service
        self._settle_seconds = settle_seconds
        self._clock = clock
        self._queue = WorkQueue(self.reconcile, workers=_WORKERS)
        self._live_names: set[str] = set()
        self._unsettled: dict[str, _Difference] = {}

    async def run(self, look_seconds: float, ask_seconds: float) -> None:
        """Works until it is cancelled."""
        async with asyncio.TaskGroup() as together:
            together.create_task(self._queue.run())
            together.create_task(self._again(look_seconds, self._all))
            together.create_task(self._again(ask_seconds, lambda: list(self._unsettled)))

    def changed(self, kind: str, name: str) -> None:
        """A name, or a Simulator that names mean, is another one."""
        names = [name] if kind == _KIND else naming(name, self._cache.all(_KIND))
        for each in names:
            self._queue.add(each)

    async def _again(self, every_seconds: float, which: Callable[[], list[str]]) -> None:
        while True:
            await asyncio.sleep(every_seconds)
            for name in which():
                self._queue.add(name)

    def _all(self) -> list[str]:
        return [each["metadata"]["name"] for each in self._cache.all(_KIND)]

    async def reconcile(self, name: str) -> None:
        """One round for one name."""
        alias = self._cache.get(_KIND, name)
        if alias is None or "deletionTimestamp" in alias["metadata"]:
            await self._end_alias(name)
            return
        self._live_names.add(name)
        before = AliasStatus.model_validate(alias.get("status") or {})
        now = timestamp(datetime.now(UTC))
        meaning = self._meaning(alias)
        condition = await self._recorded(alias, meaning)
        after = build_status(
            AliasState(alias["metadata"]["generation"], before, meaning, condition), now
        )
        if after != before:
            change = _KIND, alias, before, after, now
            stored_alias = await asyncio.to_thread(write_status, self._cluster, *change)
            self._cache.put(_KIND, stored_alias)

    def _meaning(self, alias: Object) -> Meaning | Refused:
        try:
            spec = AliasSpec.model_validate(alias["spec"])
        except ValidationError as error:
            return Refused("Invalid", f"spec.{first_problem(error)}")
        return resolved(spec, lambda name: self._cache.get("Simulator", name))

    async def _recorded(self, alias: Object, meaning: Meaning | Refused) -> ConditionState:
        if isinstance(meaning, Refused):
            return ConditionState("Recorded", "Unknown", "NotResolved")
        name = alias["metadata"]["name"]
        try:
            last = await self._service.last(name)
            if last and last.meaning == meaning:
                self._unsettled.pop(name, None)
                return recorded(last)
            if not self._stays(name, last, meaning):
                return settling(last)
            key = _key(name, last, meaning)
            change = await self._service.move(name, bypass_move(meaning), key)
        except SimulatorError as error:
            return ConditionState("Recorded", "Unknown", "ServiceUnavailable", str(error))
        except InputError as error:
            return ConditionState("Recorded", "False", "Refused", str(error))
        self._unsettled.pop(name, None)
        return recorded(change)

    async def _end_alias(self, name: str) -> None:
        """Of a name that this process saw: one that was never here may be set by other means."""
        if name not in self._live_names:
            return
        last = await self._service.last(name)
        if last and last.meaning:
            if not self._stays(name, last, None):
                return
            await self._service.end(name, BYPASS_ACTOR, _key(name, last, None))
        self._unsettled.pop(name, None)
        self._live_names.discard(name)

    def _stays(self, name: str, last: AliasChange | None, meaning: Meaning | None) -> bool:
        """Whether the two differ, and in the same way, for so long that nothing is on its way."""
        before, now = self._unsettled.get(name), self._clock()
        if before is None or before[:2] != (last, meaning):
            before = self._unsettled[name] = _Difference(last, meaning, now)
        return now - before.since >= self._settle_seconds


def _key(name: str, last: AliasChange | None, meaning: Meaning | None) -> str:
    """So that who finds the same after the same word tells it once."""
    word = last.model_dump(mode="json") if last else None
    canary = meaning.canary.model_dump(mode="json") if meaning and meaning.canary else None
    parts = [name, word, meaning and meaning.simulator, canary]
    return digest_json(parts).removeprefix("sha256:")
