"""Several replicas of one engine as one: an episode stays with the replica that knows its prefix.

Rendezvous hashing: every affinity ranks the replicas in an order of its own, the same in every
process, so that only the episodes of a replica that goes or comes move. To move is no retry:
what failed gave nothing.
"""

import asyncio
import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from agentworld.engine.base import Completion, Engine
from agentworld.errors import EngineError, InputError
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling

# Another replica may well answer where one failed so; the others come from the request or the
# model, which are the same everywhere.
_OF_ONE_REPLICA = ("engine", "slow", "open", "capacity")


class _Replica(NamedTuple):
    name: bytes
    engine: Engine

    def rank(self, affinity: bytes) -> bytes:
        """Where it stands for an affinity: the lowest is asked first."""
        return hashlib.sha256(self.name + affinity).digest()


class Replicas:
    """Asks the replica that `affinity` prefers, and the next where that one cannot answer.

    Each is named by its address and should be behind a circuit breaker of its own, so that a
    dead one is passed by at once. A request without an affinity goes to any of them.
    """

    def __init__(self, engines: Mapping[str, Engine]) -> None:
        if not engines:
            raise InputError("an engine without replicas cannot answer; name at least one")
        self._replicas = [_Replica(f"{name} ".encode(), engines[name]) for name in engines]
        self._nameless = itertools.count()

    async def complete(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        seed: int | None = None,
        *,
        affinity: str = "",
    ) -> Completion:
        """The first answer; raises the EngineError that says to come back soonest."""
        key = (affinity or str(next(self._nameless))).encode()
        failures: list[EngineError] = []
        for replica in sorted(self._replicas, key=lambda replica: replica.rank(key)):
            try:
                return await replica.engine.complete(messages, sampling, seed, affinity=affinity)
            except EngineError as error:
                if error.kind not in _OF_ONE_REPLICA:
                    raise
                failures.append(error)
        raise min(failures, key=_pause)

    async def close(self) -> None:
        """Lets go of the connections of all."""
        await asyncio.gather(*(replica.engine.close() for replica in self._replicas))


def _pause(error: EngineError) -> float:
    return math.inf if error.retry_after_seconds is None else error.retry_after_seconds
