"""What is done to the API server, the operators, their clocks and their networks.

One seed decides what and in which order; when each of them comes to it does not repeat.
"""

import asyncio
import random
import signal
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress

from agentworld.errors import ClusterError
from agentworld_operator.resources.names import DIGEST_LABEL
from agentworld_operator.resources.places import typed
from faults_operator.api_proxy import FATES
from faults_operator.crew import Crew, until
from faults_operator.place import LEASE_SECONDS
from faults_operator.usurping import Stop
from make_operator import Namespace

Fault = Callable[[Crew, random.Random], Awaitable[bool]]
"""Does it, and tells whether it came to anything."""

_BETWEEN_SECONDS = 0.6
_PATIENCE_SECONDS = 6.0
_DAY = 86_400.0
_JUMPS = (5.0, 3_600.0, 70 * _DAY, 4_000 * _DAY)
"""Of the time of day: the longest are longer than a certificate's life, and an authority's."""


def deck(num: int, seed: str) -> list[str]:
    """So many faults by name, each kind in its share, shuffled."""
    chance, drawn = random.Random(f"deck {seed}"), []
    while len(drawn) < num:
        hand = [name for name, share in _SHARES.items() for _ in range(share)]
        chance.shuffle(hand)
        drawn += hand
    return drawn[:num]


async def rage(crew: Crew, faults: list[str], seed: str) -> None:
    """All of these, one begun after the other; one that hits nobody is tried again."""
    chance = random.Random(f"rage {seed}")
    locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
    async with asyncio.TaskGroup() as group:
        for name in faults:
            await until(crew.led, "operator")
            own = random.Random(chance.random())
            group.create_task(_insist(crew, name, own, locks))
            await asyncio.sleep(_BETWEEN_SECONDS * chance.uniform(0.2, 1.8))


async def _insist(
    crew: Crew, name: str, chance: random.Random, locks: defaultdict[str, asyncio.Lock]
) -> None:
    if name in _OF_OPERATORS:
        victim = crew.follower if name.startswith("follower") else crew.leader
        async with locks[victim]:
            await _OF_OPERATORS[name](crew, victim, chance)
    elif name in _ALONE:
        async with locks[name]:
            await _ALONE[name](crew, chance)
    else:
        await until(lambda: _OF_REQUESTS[name](crew, chance), f"{name}: victim")


async def _kill_api_server(crew: Crew, chance: random.Random) -> None:
    await crew.api_answers()
    server = crew.place.cluster.api_server
    crew.count("API server killed", "kube-apiserver")
    server.kill()
    await asyncio.sleep(chance.uniform(0.0, 1.0))
    server.start()
    await crew.api_answers()


async def _kill(crew: Crew, name: str, chance: random.Random) -> None:
    kept = crew.operators[name]
    await _lives(crew, name)
    kept.rest(chance.uniform(0.0, 1.0))
    crew.count(f"{_role(crew, name)} killed", name)
    kept.program.kill()
    await _lives(crew, name)


async def _stop(crew: Crew, name: str, seconds: float) -> None:
    await _lives(crew, name)
    crew.count(f"{_role(crew, name)} stopped", name)
    since = time.monotonic()
    crew.operators[name].program.send(signal.SIGSTOP)
    await asyncio.sleep(seconds)
    crew.operators[name].program.send(signal.SIGCONT)
    crew.stops.append(Stop(name, since, time.monotonic()))


async def _stop_long(crew: Crew, name: str, chance: random.Random) -> None:
    """Longer than a lease."""
    await _stop(crew, name, LEASE_SECONDS * chance.uniform(1.1, 1.5))


async def _stop_shortly(crew: Crew, name: str, chance: random.Random) -> None:
    await _stop(crew, name, chance.uniform(0.2, 2.5))


async def _jump_monotonic(crew: Crew, name: str, chance: random.Random) -> None:
    crew.count(f"{_role(crew, name)}'s clock jumped", name)
    crew.clocks[name].jump(monotonic=chance.choice((1.0, 4.0, 30.0, 7 * _DAY)))


async def _jump_forward(crew: Crew, name: str, chance: random.Random) -> None:
    crew.count(f"{_role(crew, name)}'s time set forward", name)
    await _set_time(crew, name, chance.choice(_JUMPS), chance)


async def _jump_back(crew: Crew, name: str, chance: random.Random) -> None:
    crew.count(f"{_role(crew, name)}'s time set back", name)
    await _set_time(crew, name, -chance.choice(_JUMPS), chance)


async def _set_time(crew: Crew, name: str, seconds: float, chance: random.Random) -> None:
    """Until somebody sees it, and sets it right."""
    crew.clocks[name].jump(wall=seconds)
    await asyncio.sleep(chance.uniform(0.5, 2.5))
    crew.clocks[name].jump(wall=-seconds)


def _role(crew: Crew, name: str) -> str:
    return "leader" if name == crew.leader else "follower"


async def _lives(crew: Crew, name: str) -> None:
    async def runs() -> bool:
        return crew.operators[name].program.pid is not None

    await until(runs, name)


async def _kill_service(crew: Crew, chance: random.Random) -> None:
    await crew.service_answers()
    crew.service.rest(chance.uniform(0.0, 0.5))
    crew.count("service killed", "service")
    crew.service.program.kill()
    await crew.service_answers()


async def _kill_pods(crew: Crew, chance: random.Random) -> bool:
    """One, or all of an engine."""
    namespace = crew.place.namespace
    with suppress(ClusterError):
        pods = await asyncio.to_thread(namespace.all, "Pod", DIGEST_LABEL)
        if not pods.objects:
            return False
        chosen = chance.choice(pods.objects)["metadata"]["labels"][DIGEST_LABEL]
        killed = [
            each for each in pods.objects if each["metadata"]["labels"][DIGEST_LABEL] == chosen
        ][: chance.choice((1, 9))]
        for pod in killed:
            await asyncio.to_thread(namespace.delete, "Pod", pod["metadata"]["name"])
        crew.count("pods killed", chosen)
        return True
    return False


async def _cut_watches(crew: Crew, _chance: random.Random) -> bool:
    """Of whoever watches: the leader."""
    cut = [name for name, api in crew.api.items() if api.cut_watches()]
    for name in cut[:1]:
        crew.count("watches dropped", name)
    return bool(cut)


async def _expire_watch(crew: Crew, chance: random.Random) -> bool:
    """It is cut, and where it was to go on is forgotten; what went meanwhile nobody tells."""
    api = crew.api[crew.leader]
    expiring = asyncio.create_task(api.let("expired", "watch", _PATIENCE_SECONDS))
    await asyncio.sleep(chance.uniform(0, 0.5))
    api.cut_watches()
    return await expiring


async def _delete_secret(crew: Crew, _chance: random.Random) -> bool:
    with suppress(ClusterError):
        await asyncio.to_thread(crew.place.namespace.delete, "Secret", "agentworld-webhook")
        crew.count("certificates deleted", "agentworld-webhook")
        await _upgrade(crew)
        return True
    return False


async def _upgrade(crew: Crew) -> None:
    """As the chart's Job does: what is not there is made, and what is there stays."""
    while not await asyncio.to_thread(_is_made, crew.place.namespace):
        await asyncio.sleep(_BETWEEN_SECONDS)


def _is_made(namespace: Namespace) -> bool:
    with suppress(ClusterError):
        if namespace.get("Secret", "agentworld-webhook") is None:
            made = {**typed("Secret"), "metadata": {"name": "agentworld-webhook"}}
            namespace.create(made)
        return True
    return False


async def _spoil_secret(crew: Crew, chance: random.Random) -> bool:
    which = chance.choice(("tls.crt", "tls.key", "ca.crt", "ca.key"))
    spoiled = {"data": {which: chance.choice(("", "bm9uc2Vuc2U="))}}
    with suppress(ClusterError):
        namespace = crew.place.namespace
        await asyncio.to_thread(namespace.patch, "Secret", "agentworld-webhook", spoiled)
        crew.count("certificates spoiled", which)
        return True
    return False


async def _shut_webhook(crew: Crew, chance: random.Random) -> None:
    crew.count("webhook unreachable", "webhook")
    await crew.webhook.shut()
    await asyncio.sleep(chance.uniform(0.2, 2.0))
    await crew.webhook.open()


async def _request(crew: Crew, chance: random.Random) -> bool:
    """One request of an operator fails, and its answer is not the server's, or does not come."""
    matter = chance.choices(("write", "lease", "read", "watch"), (6, 2, 1, 1))[0]
    api = crew.api[crew.leader]
    if matter == "watch":
        return await _expire_watch(crew, chance)
    return await api.let(chance.choice(FATES[matter]), matter, _PATIENCE_SECONDS)


_OF_OPERATORS: dict[str, Callable[[Crew, str, random.Random], Awaitable[None]]] = {
    "leader killed": _kill,
    "follower killed": _kill,
    "leader stopped for long": _stop_long,
    "leader stopped": _stop_shortly,
    "follower stopped": _stop_shortly,
    "leader's clock jumped": _jump_monotonic,
    "follower's clock jumped": _jump_monotonic,
    "leader's time set forward": _jump_forward,
    "leader's time set back": _jump_back,
}
_ALONE: dict[str, Callable[[Crew, random.Random], Awaitable[None]]] = {
    "API server killed": _kill_api_server,
    "service killed": _kill_service,
    "webhook unreachable": _shut_webhook,
}
"""One of them at a time."""
_OF_REQUESTS: dict[str, Fault] = {
    "pods killed": _kill_pods,
    "watches dropped": _cut_watches,
    "watch expired": _expire_watch,
    "certificates deleted": _delete_secret,
    "certificates spoiled": _spoil_secret,
    "request": _request,
}
"""They come to nothing where nobody asks, or there is nothing to be hit."""
_SHARES = {
    "API server killed": 3,
    "leader killed": 2,
    "follower killed": 1,
    "leader stopped for long": 1,
    "leader stopped": 1,
    "follower stopped": 1,
    "leader's clock jumped": 2,
    "follower's clock jumped": 1,
    "leader's time set forward": 2,
    "leader's time set back": 2,
    "service killed": 1,
    "pods killed": 3,
    "watches dropped": 4,
    "watch expired": 4,
    "certificates deleted": 1,
    "certificates spoiled": 2,
    "webhook unreachable": 2,
    "request": 17,
}
"""Of fifty."""
