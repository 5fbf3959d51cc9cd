"""The operator's process: `python -m agentworld_operator.main`, set up by the environment alone."""

import asyncio
import logging
import signal
import sys
import time
from contextlib import suppress
from functools import partial

import kopf
from kubernetes import client
from pydantic import ValidationError

from agentworld.errors import AgentworldError, ClusterError, InputError
from agentworld.records.base import first_problem
from agentworld.storage.folder import read_file
from agentworld_operator.cluster import Cluster
from agentworld_operator.connection import configuration, login
from agentworld_operator.episodes import OpenEpisodes
from agentworld_operator.identities import Identities
from agentworld_operator.leader import Leadership, Times
from agentworld_operator.reconcile import Reconciler, Surroundings
from agentworld_operator.resources.names import OPERATOR
from agentworld_operator.running import Running
from agentworld_operator.settings import Settings
from agentworld_operator.watched import Cache


async def operate(settings: Settings) -> None:
    """Waits until it leads, and works until it is told to stop; raises where it leads no longer."""
    _stop_when_told()
    told = configuration(settings.kubeconfig)
    cluster = Cluster(client.ApiClient(told), settings.namespace)
    lease = settings.lease_seconds
    times = Times(duration=lease, renewal=lease * 2 / 3, pause=min(2.0, lease / 6))
    leadership = Leadership(cluster, OPERATOR, settings.identity, times=times, clock=time.monotonic)
    await leadership.acquire()
    try:
        await _lead(leadership, _running(settings, cluster), partial(login, told), settings)
    finally:
        await leadership.release()


def _stop_when_told() -> None:
    """From the start; kopf does so only once it watches."""
    me = asyncio.current_task()
    assert me is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)


async def _lead(
    leadership: Leadership,
    running: Running,
    log_in: partial[kopf.ConnectionInfo],
    settings: Settings,
) -> None:
    work = asyncio.create_task(
        running.run(log_in, look_seconds=settings.look_seconds, ask_seconds=settings.ask_seconds)
    )
    keep = asyncio.create_task(leadership.keep())
    try:
        await asyncio.wait((work, keep), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
        else:
            raise ClusterError("another replica leads; this one begins anew")
    finally:
        for task in (work, keep):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def _running(settings: Settings, cluster: Cluster) -> Running:
    cache, identities = Cache(), Identities(read_file)
    episodes = OpenEpisodes(settings.service_url, settings.service_token)
    surroundings = Surroundings(
        settings.service_url, settings.verifier_image, time.monotonic, episodes.of
    )
    reconciler = Reconciler(cluster, cache, identities, surroundings)
    return Running(cluster, cache, identities, reconciler, episodes)


def main() -> int:
    """Exit status 2 and one sentence for what the user gave wrong, 1 where it has to begin anew."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("kopf").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        with suppress(asyncio.CancelledError):
            asyncio.run(operate(_settings()))
    except ClusterError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except AgentworldError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _settings() -> Settings:
    try:
        return Settings()
    except ValidationError as error:
        raise InputError(f"the environment is wrong at {first_problem(error)}") from error


if __name__ == "__main__":
    sys.exit(main())
