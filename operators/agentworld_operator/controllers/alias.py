"""SimulatorAliases: what each means now, and whether the ledger says the same.

The webhook has a move judged and recorded before it is so. What the ledger does not know all the
same is recorded as found, once nothing can be on its way any more.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pydantic import ValidationError

from agentworld.cluster.api_resources import Object
from agentworld.cluster.records.alias import AliasSpec, AliasStatus
from agentworld.errors import InputError, SimulatorError
from agentworld.records.alias import AliasChange, Meaning
from agentworld.records.base import digest_json, first_problem
from agentworld_operator.cache import Cache
from agentworld_operator.controllers.controller import Outcome
from agentworld_operator.policy.admission import aliases_of
from agentworld_operator.policy.alias import (
    BYPASS_ACTOR,
    AliasState,
    build_bypass_move,
    build_status,
    recorded_condition,
    resolve,
    settling_condition,
)
from agentworld_operator.policy.conditions import ConditionState
from agentworld_operator.policy.problem import Problem
from agentworld_operator.service import Service
from agentworld_operator.settings import OperatorSettings


class _Difference(NamedTuple):
    """Between the ledger and the cluster, and since when it is seen so."""

    last: AliasChange | None
    meaning: Meaning | None
    since: float


class AliasReconciler:
    """Compares each alias with the ledger. After a restart it only waits again."""

    kind = "SimulatorAlias"
    status_type = AliasStatus

    def __init__(
        self,
        cache: Cache,
        service: Service,
        settings: OperatorSettings,
        *,
        settle_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        """`settle_seconds` is how long a move may be on its way between ledger and cluster."""
        self._cache = cache
        self._service = service
        self._settings = settings
        self._settle_seconds = settle_seconds
        self._clock = clock
        self._live_names: set[str] = set()
        self._differences: dict[str, _Difference] = {}

    def affected_names(self, kind: str, resource: Object) -> Iterable[str]:
        """An alias itself, and all that mean a Simulator."""
        name = resource["metadata"]["name"]
        if kind == "Simulator":
            return aliases_of(name, self._cache.all(self.kind))
        return [name] if kind == self.kind else []

    async def reconcile(self, alias: Object, before: AliasStatus, now: str) -> Outcome[AliasStatus]:
        """Compares what it means with the ledger, and records there what stays otherwise."""
        name = alias["metadata"]["name"]
        self._live_names.add(name)
        meaning = self._meaning(alias)
        condition = await self._record(name, meaning)
        state = AliasState(alias["metadata"]["generation"], before, meaning, condition)
        differs, settings = name in self._differences, self._settings
        look_again_seconds = settings.ask_seconds if differs else settings.look_seconds
        return Outcome(build_status(state, now), look_again_seconds=look_again_seconds)

    async def clean_up(self, name: str) -> Outcome[AliasStatus]:
        """Ends a name that this process saw: one that was never here may be set by other means."""
        if name not in self._live_names:
            return Outcome()
        last = await self._service.last(name)
        if last and last.meaning:
            if not self._stays(name, last, None):
                return Outcome(look_again_seconds=self._settings.ask_seconds)
            await self._service.end(name, BYPASS_ACTOR, _key(name, last, None))
        self._differences.pop(name, None)
        self._live_names.discard(name)
        return Outcome()

    def _meaning(self, alias: Object) -> Meaning | Problem:
        try:
            spec = AliasSpec.model_validate(alias["spec"])
        except ValidationError as error:
            return Problem("Invalid", f"spec.{first_problem(error)}")
        return resolve(spec, lambda name: self._cache.get("Simulator", name))

    async def _record(self, name: str, meaning: Meaning | Problem) -> ConditionState:
        if isinstance(meaning, Problem):
            return ConditionState("Recorded", "Unknown", "NotResolved")
        try:
            last = await self._service.last(name)
            if last is None or last.meaning != meaning:
                if not self._stays(name, last, meaning):
                    return settling_condition(last)
                key = _key(name, last, meaning)
                last = await self._service.move(name, build_bypass_move(meaning), key)
        except SimulatorError as error:
            return ConditionState("Recorded", "Unknown", "ServiceUnavailable", str(error))
        except InputError as error:
            return ConditionState("Recorded", "False", "Refused", str(error))
        self._differences.pop(name, None)
        return recorded_condition(last)

    def _stays(self, name: str, last: AliasChange | None, meaning: Meaning | None) -> bool:
        """Whether the two differ, and in the same way, for so long that nothing is on its way."""
        before, now = self._differences.get(name), self._clock()
        if before is None or before[:2] != (last, meaning):
            before = self._differences[name] = _Difference(last, meaning, now)
        return now - before.since >= self._settle_seconds


def _key(name: str, last: AliasChange | None, meaning: Meaning | None) -> str:
    """So that who finds the same difference twice records it once."""
    last_change = last.model_dump(mode="json") if last else None
    canary = meaning.canary.model_dump(mode="json") if meaning and meaning.canary else None
    parts = [name, last_change, meaning and meaning.simulator, canary]
    return digest_json(parts).removeprefix("sha256:")
