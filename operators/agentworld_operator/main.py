"""The operator's process: `python -m agentworld_operator.main`, set up by environment variables."""

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Coroutine
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

from agentworld.cluster.client import ApiServer, Cluster, configuration
from agentworld.cluster.names import OPERATOR
from agentworld.errors import ClusterError
from agentworld.recipes.environment import exit_status, from_environment
from agentworld.storage.folder import read_file
from agentworld_operator.admission import Admission
from agentworld_operator.cache import Cache
from agentworld_operator.connection import login
from agentworld_operator.controllers.alias import AliasReconciler
from agentworld_operator.controllers.schedule import ScheduleReconciler
from agentworld_operator.controllers.simulator import SimulatorReconciler
from agentworld_operator.episodes import OpenEpisodes
from agentworld_operator.identities import Identities
from agentworld_operator.leader import Leadership, Times
from agentworld_operator.metrics import OperatorMetrics, serve_metrics
from agentworld_operator.operator import Operator, Reconcilers
from agentworld_operator.recurring_runs import RecurringRuns
from agentworld_operator.service import Service
from agentworld_operator.settings import OperatorSettings, WebhookSettings
from agentworld_operator.webhook import serve
from agentworld_pipelines.settings import ServerSettings


async def operate(settings: OperatorSettings, webhook: WebhookSettings) -> None:
    """Waits until it leads, and reconciles until a signal stops it; raises if it loses the lease.

    Every replica serves the webhook, whether or not it leads.
    """
    _cancel_on_sigterm()
    client_configuration = configuration(settings.kubeconfig)
    cluster = Cluster(ApiServer(client_configuration), settings.namespace, OPERATOR)
    service = Service(settings.service_url, settings.service_token)
    lease = settings.lease_seconds
    times = Times(duration=lease, renewal=lease * 2 / 3, pause=min(2.0, lease / 6))
    leadership = Leadership(cluster, OPERATOR, settings.identity, times=times, clock=time.monotonic)
    metrics = OperatorMetrics()
    admission = Admission(cluster, service)
    has_webhook = webhook.port is not None
    async with (
        serve_metrics(metrics, settings.metrics_port),
        serve(admission.decide, webhook) if has_webhook else nullcontext(),
    ):
        try:
            await leadership.acquire()
            operator = _build_operator(settings, webhook, cluster, service)
            metrics.lead(operator.queues)
            await _run_as_leader(
                leadership, operator.run(partial(login, client_configuration), settings)
            )
        finally:
            await leadership.release()


def _cancel_on_sigterm() -> None:
    """From the start, because kopf handles the signal only while it watches."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


async def _run_as_leader(leadership: Leadership, work: Coroutine[Any, Any, None]) -> None:
    """Runs the work until it ends, or until this replica loses the lease."""
    work_task, renewal_task = asyncio.create_task(work), asyncio.create_task(leadership.keep())
    try:
        done, _ = await asyncio.wait((work_task, renewal_task), return_when=asyncio.FIRST_COMPLETED)
        if done == {renewal_task}:
            raise ClusterError("another replica leads; restarting this one")
        await work_task
    finally:
        work_task.cancel()
        renewal_task.cancel()
        await asyncio.gather(work_task, renewal_task, return_exceptions=True)


def _build_operator(
    settings: OperatorSettings, webhook: WebhookSettings, cluster: Cluster, service: Service
) -> Operator:
    cache, identities = Cache(), Identities(read_file)
    episodes = OpenEpisodes(settings.service_url, settings.service_token)
    runs = RecurringRuns(
        settings.namespace,
        from_environment(ServerSettings),
        settings.pipeline_placement,
        settings.pipeline_image,
    )
    clock = time.monotonic
    reconcilers = Reconcilers(
        SimulatorReconciler(
            cluster, cache, identities, settings, open_episodes=episodes.of, clock=clock
        ),
        AliasReconciler(
            cluster, cache, service, settings, settle_seconds=webhook.settle_seconds, clock=clock
        ),
        ScheduleReconciler(cache, runs),
    )
    return Operator(cluster, cache, identities, episodes, reconcilers)


def main() -> int:
    """Exit status 2 and one sentence for invalid settings, 1 if the process should be restarted."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("kopf").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    return exit_status(_run)


def _run() -> None:
    with suppress(asyncio.CancelledError):
        asyncio.run(operate(from_environment(OperatorSettings), from_environment(WebhookSettings)))


if __name__ == "__main__":
    sys.exit(main())
