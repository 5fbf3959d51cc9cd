"""All that takes part in a campaign: a control plane, operators, their service, and networks."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import httpx

import control_plane
import make_access
from agentworld.engine.process import LOOPBACK
from agentworld.errors import ClusterError
from agentworld_operator.resources.places import PLACES
from faults.journal import Journal
from faults.program import Kept, Program
from faults.proxy import Proxy
from faults_operator.api_proxy import ApiProxy
from faults_operator.kubelet import Kubelet
from faults_operator.place import RENEWAL_SECONDS, Place
from faults_operator.usurping import Stop
from make_operator import MERGE
from ports import free_ports

OPERATORS = ("first", "second")
_READY_SECONDS = 90.0


class Crew:
    """Two replicas of the operator, each behind a network of its own."""

    def __init__(self, place: Place, seed: str) -> None:
        self.place = place
        self.faults = Journal(place.folder / "faults.jsonl")
        self.num_faults = 0
        self.stops: list[Stop] = []
        own, api, (door, service) = free_ports(2), free_ports(2), free_ports(2)
        self.api = {
            name: ApiProxy(
                name, port, place.cluster.url, str(place.cluster.certificate), self.count
            )
            for name, port in zip(OPERATORS, api, strict=True)
        }
        self.webhook = Proxy("webhook", door, own, 0.0, seed, self.faults)
        self.service = self._kept("service", service, lambda _: place.service(service))
        self.service_url = f"http://{LOOPBACK}:{service}"
        self.clocks = {name: place.clocks(name) for name in OPERATORS}
        self.operators = {
            name: self._operator(name, port) for name, port in zip(OPERATORS, own, strict=True)
        }
        self._kubelet = Kubelet(place.namespace, [place.mounted(name) for name in OPERATORS])

    def count(self, kind: str, target: str) -> None:
        """Notes a fault that happens now."""
        self.num_faults += 1
        self.faults.write(kind=kind, target=target)

    @property
    def leader(self) -> str:
        """Who took or kept the lease last; the first one where nobody did."""
        held = {
            name: max((each.sent for each in api.written if each.holds), default=0.0)
            for name, api in self.api.items()
        }
        return max(held, key=lambda name: held[name])

    async def led(self) -> bool:
        """Whether somebody leads, as far as one can tell from outside."""
        now = time.monotonic()
        return any(
            each.holds and now - each.sent < RENEWAL_SECONDS / 2
            for api in self.api.values()
            for each in api.written[-50:]
        )

    @property
    def follower(self) -> str:
        """The other one."""
        (other,) = set(OPERATORS) - {self.leader}
        return other

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Everything runs and comes back, while the block does."""
        async with AsyncExitStack() as ending:
            for api in self.api.values():
                await ending.enter_async_context(asynccontextmanager(api.run)())
            await self.webhook.open()
            ending.push_async_callback(self.webhook.shut)
            for kept in (*self.operators.values(), self.service):
                ending.push_async_callback(kept.program.end)
            for work in (self._keep(), self._kubelet.run()):
                ending.callback(asyncio.create_task(work).cancel)
            await self._guard()
            yield

    async def api_answers(self) -> None:
        """Returns once the API server does."""
        await until(
            lambda: asyncio.to_thread(control_plane.is_ready, self.place.cluster), "API server"
        )

    async def service_answers(self) -> None:
        """Returns once the service does."""
        await until(self._served, "service")

    async def _keep(self) -> None:
        while True:
            for kept in (*self.operators.values(), self.service):
                kept.keep()
            await asyncio.sleep(0.05)

    async def _guard(self) -> None:
        """The API server asks the webhook, and is answered."""
        namespace, place = self.place.namespace, self.place
        for name in OPERATORS:
            place.mounted(name).mkdir()
        label = {"metadata": {"labels": {"guarded": namespace.namespace}}}
        await self.service_answers()
        namespace.patch("Namespace", namespace.namespace, label)
        namespace.create(place.configuration(self.webhook.port))
        await until(lambda: asyncio.to_thread(self._guarded), "webhook")

    def _guarded(self) -> bool:
        spec = {"simulator": "nobody"}
        asked = {"apiVersion": "agentworld.dev/v1alpha1", "kind": "SimulatorAlias", "spec": spec}
        path = PLACES["SimulatorAlias"].path(self.place.namespace.namespace) + "?dryRun=All"
        try:
            self.place.namespace.call("POST", path, asked | {"metadata": {"name": "dry"}}, MERGE)
        except ClusterError as error:
            return "there is no Simulator nobody" in str(error)
        return False

    async def _served(self) -> bool:
        with suppress(httpx.TransportError):
            async with httpx.AsyncClient(trust_env=False) as client:
                headers = {"Authorization": make_access.bearer("acme-operator")}
                answer = await client.get(f"{self.service_url}/metrics", headers=headers)
                return answer.is_success
        return False

    def _operator(self, name: str, port: int) -> Kept:
        told = self.api[name].url, self.service_url, port
        return self._kept(name, port, lambda _: self.place.operator(name, *told))

    def _kept(
        self, name: str, port: int, start: Callable[[Kept], tuple[list[str], dict[str, str]]]
    ) -> Kept:
        return Kept(Program(name, self.place.folder / f"{name}.log"), port, name, start)


async def until(
    holds: Callable[[], Awaitable[bool]], what: str, seconds: float = _READY_SECONDS
) -> None:
    """Returns as soon as this holds; fails where it does not in so many seconds."""
    deadline = time.monotonic() + seconds
    while not await holds():
        assert time.monotonic() < deadline, f"the {what} does not come up"
        await asyncio.sleep(0.1)
