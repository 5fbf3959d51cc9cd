"""The parties of a campaign: a control plane, operators, their service, and networks."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial

import httpx
import trustme

import make.access
from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.engine.process import LOOPBACK, free_port
from agentworld.errors import ClusterError
from campaigns.harness.journal import Journal
from campaigns.harness.processes import Command, RestartedProgram, keep_running, until
from campaigns.harness.proxy import Proxy
from campaigns.operator.api_proxy import ApiProxy
from campaigns.operator.place import RENEWAL_SECONDS, Place
from campaigns.operator.stalls import watch_stalls
from campaigns.operator.usurping import OURS
from machines import control_plane
from machines.kubelet import Kubelet
from machines.program import Program
from make.certificates import mount, new_files
from make.operator import MERGE

OPERATORS = ("first", "second")


class Crew:
    """Two replicas of the operator, each behind its own network."""

    def __init__(self, place: Place, seed: str) -> None:
        self.place = place
        self.faults = Journal(place.folder / "faults.jsonl")
        webhook_ports, api_ports = [free_port(), free_port()], [free_port(), free_port()]
        proxy_port, service_port = free_port(), free_port()
        self.api = {
            name: ApiProxy(
                name, port, place.cluster.url, str(place.cluster.certificate), self.count
            )
            for name, port in zip(OPERATORS, api_ports, strict=True)
        }
        self.webhook = Proxy("webhook", proxy_port, webhook_ports, 0.0, seed, self.faults)
        self.service = self._program("service", service_port, place.service(service_port))
        self.service_url = f"http://{LOOPBACK}:{service_port}"
        self.clocks = {name: place.clocks(name) for name in OPERATORS}
        self.operators = {
            name: self._operator(name, port)
            for name, port in zip(OPERATORS, webhook_ports, strict=True)
        }
        self._authority = trustme.CA()
        self._kubelet = Kubelet(place.namespace)

    def renew_certificate(self) -> None:
        """Mounts another certificate of the webhook, as a kubelet does."""
        files = new_files(self._authority)
        for name in OPERATORS:
            mount(files, self.place.mounted(name))

    def count(self, kind: str, target: str) -> None:
        """Records a fault that happens now."""
        self.faults.write(kind=kind, target=target)

    @property
    def programs(self) -> list[RestartedProgram]:
        """Our own processes."""
        return [*self.operators.values(), self.service]

    @property
    def leader(self) -> str:
        """The last operator to acquire or renew the lease; the first one by default."""
        leases = {
            name: max((item.sent for item in api.written if item.holds), default=0.0)
            for name, api in self.api.items()
        }
        return max(leases, key=lambda name: leases[name])

    async def led(self) -> bool:
        """Whether an operator leads, as far as visible from outside."""
        now = time.monotonic()
        return any(
            item.holds and now - item.sent < RENEWAL_SECONDS / 2
            for api in self.api.values()
            for item in api.written[-50:]
        )

    @property
    def follower(self) -> str:
        """The operator that does not lead."""
        (follower,) = set(OPERATORS) - {self.leader}
        return follower

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """All processes run, and are restarted, while the block runs."""
        stop_event = threading.Event()
        async with AsyncExitStack() as stack:
            stack.callback(stop_event.set)
            watch_stalls(OURS, self.place.stalls, stop_event)
            for api in self.api.values():
                await stack.enter_async_context(asynccontextmanager(api.run)())
            for name in OPERATORS:
                self.place.mounted(name).mkdir()
            self.renew_certificate()
            await self.webhook.open()
            stack.push_async_callback(self.webhook.shut)
            for program in self.programs:
                stack.push_async_callback(program.program.end)
            for work in (keep_running(self.programs), self._kubelet.run()):
                stack.callback(asyncio.create_task(work).cancel)
            await self._guard()
            yield

    async def api_answers(self) -> None:
        """Returns once the API server responds."""
        is_ready = partial(asyncio.to_thread, control_plane.is_ready, self.place.cluster)
        await until(is_ready, "the API server does not come up")

    async def service_answers(self) -> None:
        """Returns once the service responds."""
        await until(self._served, "the service does not come up")

    async def _guard(self) -> None:
        """Returns once the API server calls the webhook, and gets a response."""
        namespace, place = self.place.namespace, self.place
        label = {"metadata": {"labels": {"guarded": namespace.namespace}}}
        await self.service_answers()
        namespace.patch("Namespace", namespace.namespace, label)
        bundle = self._authority.cert_pem.bytes()
        namespace.create(place.configuration(self.webhook.port, bundle))
        is_guarded = partial(asyncio.to_thread, self._guarded)
        await until(is_guarded, "the webhook does not come up")

    def _guarded(self) -> bool:
        spec = {"simulator": "nobody"}
        manifest = {"apiVersion": "agentworld.dev/v1alpha1", "kind": "SimulatorAlias", "spec": spec}
        path = API_RESOURCES["SimulatorAlias"].path(self.place.namespace.namespace) + "?dryRun=All"
        try:
            self.place.namespace.call("POST", path, manifest | {"metadata": {"name": "dry"}}, MERGE)
        except ClusterError as error:
            return "there is no Simulator nobody" in str(error)
        return False

    async def _served(self) -> bool:
        with suppress(httpx.TransportError):
            async with httpx.AsyncClient(trust_env=False) as client:
                headers = {"Authorization": make.access.bearer("acme-operator")}
                answer = await client.get(f"{self.service_url}/metrics", headers=headers)
                return answer.is_success
        return False

    def _operator(self, name: str, port: int) -> RestartedProgram:
        command = self.place.operator(name, self.api[name].url, self.service_url, port)
        return self._program(name, port, command)

    def _program(self, name: str, port: int, command: Command) -> RestartedProgram:
        return RestartedProgram(
            Program(name, self.place.folder / f"{name}.log"), port, name, lambda _: command
        )
