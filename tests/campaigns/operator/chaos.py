"""Faults of the API server, the operators, their clocks and their networks.

A seed determines the faults and their order; their times are not reproducible.
"""

import asyncio
import random
import signal
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from agentworld.cluster.names import DIGEST_LABEL
from agentworld.errors import ClusterError
from campaigns.harness.processes import until
from campaigns.operator.api_proxy import FATES
from campaigns.operator.crew import Crew
from campaigns.operator.place import LEASE_SECONDS
from make.certificates import FILES

_BETWEEN_SECONDS = 0.6
_PATIENCE_SECONDS = 6.0
_DAY = 86_400.0
_JUMPS = (5.0, 3_600.0, 70 * _DAY, 4_000 * _DAY)
"""Jumps of the time of day: the longest exceed the lifetime of a certificate of Helm's."""


async def rage(crew: Crew, faults: Sequence[str], seed: str) -> None:
    """Starts all of these faults, one after another; one without a target is retried."""
    chance = random.Random(f"rage {seed}")
    locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
    async with asyncio.TaskGroup() as group:
        for name in faults:
            await until(crew.led, "nobody leads")
            fault_chance = random.Random(chance.random())
            group.create_task(_insist(crew, name, fault_chance, locks))
            await asyncio.sleep(_BETWEEN_SECONDS * chance.uniform(0.2, 1.8))


async def _insist(
    crew: Crew, name: str, chance: random.Random, locks: defaultdict[str, asyncio.Lock]
) -> None:
    fault = FAULTS[name]
    if fault.victim:
        victim = crew.follower if fault.victim == "follower" else crew.leader
        async with locks[victim]:
            await fault.do(crew, victim, chance)
    elif fault.alone:
        async with locks[name]:
            await fault.do(crew, chance)
    else:
        await until(lambda: fault.do(crew, chance), f"{name} hits nobody")


async def _kill_api_server(crew: Crew, chance: random.Random) -> None:
    await crew.api_answers()
    server = crew.place.cluster.api_server
    crew.count("API server killed", "kube-apiserver")
    server.kill()
    await asyncio.sleep(chance.uniform(0.0, 1.0))
    server.start()
    await crew.api_answers()


async def _kill(crew: Crew, name: str, chance: random.Random) -> None:
    program = crew.operators[name]
    await _lives(crew, name)
    program.rest(chance.uniform(0.0, 1.0))
    crew.count(f"{_role(crew, name)} killed", name)
    program.program.kill()
    await _lives(crew, name)


async def _stop(crew: Crew, name: str, seconds: float) -> None:
    await _lives(crew, name)
    crew.count(f"{_role(crew, name)} stopped", name)
    crew.operators[name].program.send(signal.SIGSTOP)
    await asyncio.sleep(seconds)
    crew.operators[name].program.send(signal.SIGCONT)


async def _stop_long(crew: Crew, name: str, chance: random.Random) -> None:
    """Stops it for longer than a lease."""
    await _stop(crew, name, LEASE_SECONDS * chance.uniform(1.1, 1.5))


async def _stop_shortly(crew: Crew, name: str, chance: random.Random) -> None:
    await _stop(crew, name, chance.uniform(0.2, 2.5))


async def _jump_monotonic(crew: Crew, name: str, chance: random.Random) -> None:
    crew.count(f"{_role(crew, name)}'s clock jumped", name)
    crew.clocks[name].jump(monotonic=chance.choice((1.0, 4.0, 30.0, 7 * _DAY)))


async def _jump_forward(crew: Crew, name: str, chance: random.Random) -> None:
    await _set_time(crew, name, "forward", chance.choice(_JUMPS), chance)


async def _jump_back(crew: Crew, name: str, chance: random.Random) -> None:
    await _set_time(crew, name, "back", -chance.choice(_JUMPS), chance)


async def _set_time(
    crew: Crew, name: str, direction: str, seconds: float, chance: random.Random
) -> None:
    """Sets the time, and corrects it after a while."""
    crew.count(f"{_role(crew, name)}'s time set {direction}", name)
    crew.clocks[name].jump(wall=seconds)
    await asyncio.sleep(chance.uniform(0.5, 2.5))
    crew.clocks[name].jump(wall=-seconds)


def _role(crew: Crew, name: str) -> str:
    return "leader" if name == crew.leader else "follower"


async def _lives(crew: Crew, name: str) -> None:
    program = crew.operators[name].program
    await until(lambda: program.pid is not None, f"{name} does not come up")


async def _kill_service(crew: Crew, chance: random.Random) -> None:
    await crew.service_answers()
    crew.service.rest(chance.uniform(0.0, 0.5))
    crew.count("service killed", "service")
    crew.service.program.kill()
    await crew.service_answers()


async def _kill_pods(crew: Crew, chance: random.Random) -> bool:
    """Kills one pod, or all of an engine."""
    namespace = crew.place.namespace
    with suppress(ClusterError):
        pods = (await asyncio.to_thread(namespace.all, "Pod", DIGEST_LABEL)).objects
        if pods:
            digest = chance.choice(pods)["metadata"]["labels"][DIGEST_LABEL]
            engine_pods = [pod for pod in pods if pod["metadata"]["labels"][DIGEST_LABEL] == digest]
            for pod in engine_pods[: chance.choice((1, 9))]:
                await asyncio.to_thread(namespace.delete, "Pod", pod["metadata"]["name"])
            crew.count("pods killed", digest)
            return True
    return False


async def _cut_watches(crew: Crew, _chance: random.Random) -> bool:
    """Cuts the watches of the leader."""
    names = [name for name, api in crew.api.items() if api.cut_watches()]
    for name in names[:1]:
        crew.count("watches dropped", name)
    return bool(names)


async def _expire_watch(crew: Crew, chance: random.Random) -> bool:
    """Cuts a watch, and expires its resource version, so that deletions in between are not
    reported.
    """
    api = crew.api[crew.leader]
    expire_task = asyncio.create_task(api.let("expired", "watch", _PATIENCE_SECONDS))
    await asyncio.sleep(chance.uniform(0, 0.5))
    api.cut_watches()
    return await expire_task


async def _renew_certificate(crew: Crew, _chance: random.Random) -> None:
    crew.count("certificate renewed", "webhook")
    crew.renew_certificate()


async def _spoil_certificate(crew: Crew, chance: random.Random) -> None:
    file, name = chance.choice(FILES), chance.choice([*crew.operators])
    crew.count("certificate spoiled", f"{file} of {name}")
    (crew.place.mounted(name) / file).write_bytes(chance.choice((b"", b"nonsense")))
    await asyncio.sleep(chance.uniform(0.2, 2.0))
    crew.renew_certificate()


async def _shut_webhook(crew: Crew, chance: random.Random) -> None:
    crew.count("webhook unreachable", "webhook")
    await crew.webhook.shut()
    await asyncio.sleep(chance.uniform(0.2, 2.0))
    await crew.webhook.open()


async def _request(crew: Crew, chance: random.Random) -> bool:
    """One request of an operator fails: it gets another response, or none."""
    matter = chance.choices(("write", "lease", "read", "watch"), (6, 2, 1, 1))[0]
    api = crew.api[crew.leader]
    if matter == "watch":
        return await _expire_watch(crew, chance)
    return await api.let(chance.choice(FATES[matter]), matter, _PATIENCE_SECONDS)


class Fault(NamedTuple):
    """One kind of fault."""

    share: int
    """Its share in fifty."""
    do: Callable[..., Awaitable[object]]
    """Takes the crew, the target operator if there is one, and a random generator.

    Returns whether the fault happened, if it needs a target.
    """
    victim: Literal["leader", "follower", ""] = ""
    alone: bool = False
    """Whether it must not run twice at a time; a fault of an operator never does."""


FAULTS = {
    "API server killed": Fault(3, _kill_api_server, alone=True),
    "leader killed": Fault(2, _kill, "leader"),
    "follower killed": Fault(1, _kill, "follower"),
    "leader stopped for long": Fault(1, _stop_long, "leader"),
    "leader stopped": Fault(1, _stop_shortly, "leader"),
    "follower stopped": Fault(1, _stop_shortly, "follower"),
    "leader's clock jumped": Fault(2, _jump_monotonic, "leader"),
    "follower's clock jumped": Fault(1, _jump_monotonic, "follower"),
    "leader's time set forward": Fault(2, _jump_forward, "leader"),
    "leader's time set back": Fault(2, _jump_back, "leader"),
    "service killed": Fault(1, _kill_service, alone=True),
    "pods killed": Fault(3, _kill_pods),
    "watches dropped": Fault(4, _cut_watches),
    "watch expired": Fault(4, _expire_watch),
    "certificate renewed": Fault(1, _renew_certificate, alone=True),
    "certificate spoiled": Fault(2, _spoil_certificate, alone=True),
    "webhook unreachable": Fault(2, _shut_webhook, alone=True),
    "request": Fault(17, _request),
}
SHARES = {name: fault.share for name, fault in FAULTS.items()}
