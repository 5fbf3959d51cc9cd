"""The operator's process: `python -m agentworld_operator.main`, set up by the environment alone."""

import asyncio
import logging
import signal
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from agentworld.errors import ClusterError
from agentworld.recipes.environment import exit_status, from_environment
from agentworld.storage.folder import read_file
from agentworld_operator.admission import Admitting
from agentworld_operator.certificates import CertificateTarget, Certifying
from agentworld_operator.cluster import Cluster
from agentworld_operator.connection import login
from agentworld_operator.episodes import OpenEpisodes
from agentworld_operator.identities import Identities
from agentworld_operator.leader import Leadership, Times
from agentworld_operator.controllers.alias import Names
from agentworld_operator.controllers.simulator import Reconciler, Surroundings
from agentworld_operator.recurring_runs import RecurringRuns
from agentworld_operator.resources.names import OPERATOR
from agentworld_operator.operator import Running
from agentworld_operator.controllers.schedule import Schedules
from agentworld_operator.service import Service
from agentworld_operator.settings import Settings, WebhookSettings
from agentworld_operator.cache import Cache
from agentworld_operator.webhook import Certified, serving
from agentworld_pipelines.api_server import ApiServer, configuration
from agentworld_pipelines.settings import ServerSettings


async def operate(settings: Settings, webhook: WebhookSettings) -> None:
    """Waits until it leads, and works until it is told to stop; raises where it leads no longer.

    The webhook is served all the while, whoever leads.
    """
    _cancel_on_sigterm()
    client_configuration = configuration(settings.kubeconfig)
    cluster = Cluster(ApiServer(client_configuration), settings.namespace)
    service = Service(settings.service_url, settings.service_token)
    lease = settings.lease_seconds
    times = Times(duration=lease, renewal=lease * 2 / 3, pause=min(2.0, lease / 6))
    leadership = Leadership(cluster, OPERATOR, settings.identity, times=times, clock=time.monotonic)
    async with _guarding(cluster, service, webhook):
        try:
            await leadership.acquire()
            running = _running(settings, webhook, cluster, service)
            work = running.run(
                partial(login, client_configuration),
                look_seconds=settings.look_seconds,
                ask_seconds=settings.ask_seconds,
            )
            await _lead(leadership, work, _certifying(cluster, webhook))
        finally:
            await leadership.release()


def _cancel_on_sigterm() -> None:
    """From the start; kopf does so only once it watches."""
    me = asyncio.current_task()
    assert me is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)


@asynccontextmanager
async def _guarding(
    cluster: Cluster, service: Service, webhook: WebhookSettings
) -> AsyncIterator[None]:
    if webhook.port is None:
        yield
        return
    decide = Admitting(cluster, service).decide
    certified = Certified(webhook.folder, webhook.clients)
    async with serving(decide, certified, webhook.host, webhook.port):
        yield


async def _certifying(cluster: Cluster, webhook: WebhookSettings) -> None:
    if webhook.port is None:
        await asyncio.Event().wait()
    target = CertificateTarget(webhook.secret, webhook.configuration, webhook.names)
    now = partial(datetime.now, UTC)
    await Certifying(cluster, target, now).run(webhook.certify_seconds)


async def _lead(leadership: Leadership, *works: Coroutine[Any, Any, None]) -> None:
    """Until a work ends, or another one leads."""
    doing = [asyncio.create_task(work) for work in works]
    keep = asyncio.create_task(leadership.keep())
    try:
        ended, _ = await asyncio.wait((*doing, keep), return_when=asyncio.FIRST_COMPLETED)
        if ended == {keep}:
            raise ClusterError("another replica leads; this one begins anew")
        for task in ended:
            task.result()
    finally:
        for task in (*doing, keep):
            task.cancel()
        await asyncio.gather(*doing, keep, return_exceptions=True)


def _running(
    settings: Settings, webhook: WebhookSettings, cluster: Cluster, service: Service
) -> Running:
    cache, identities = Cache(), Identities(read_file)
    episodes = OpenEpisodes(settings.service_url, settings.service_token)
    surroundings = Surroundings(
        settings.service_url,
        settings.verifier_image,
        settings.pull_secrets,
        time.monotonic,
        episodes.of,
    )
    reconciler = Reconciler(cluster, cache, identities, surroundings)
    names = Names(
        cluster, cache, service, settle_seconds=webhook.settle_seconds, clock=time.monotonic
    )
    kubeflow = from_environment(ServerSettings)
    where = settings.pipeline_placement, settings.pipeline_image
    runs = RecurringRuns(settings.namespace, kubeflow, *where)
    schedules = Schedules(cluster, cache, runs, ask_seconds=settings.mirror_seconds)
    return Running(cluster, cache, identities, reconciler, episodes, names, schedules)


def main() -> int:
    """Exit status 2 and one sentence for what the user gave wrong, 1 where it has to begin anew."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("kopf").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    return exit_status(_run)


def _run() -> None:
    with suppress(asyncio.CancelledError):
        asyncio.run(operate(from_environment(Settings), from_environment(WebhookSettings)))


if __name__ == "__main__":
    sys.exit(main())
