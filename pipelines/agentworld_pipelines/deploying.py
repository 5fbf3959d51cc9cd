"""The step `deploy` on a cluster, by a Simulator and then its alias.

It only writes these objects. The cluster decides who may write them, what passes a gate and what is
recorded, by its RBAC, its operator and its service.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from agentworld.client.simulator import SimulatorClient
from agentworld.cluster.api_resources import Object
from agentworld.cluster.client import EXISTS, ApiServer, Cluster, configuration
from agentworld.cluster.names import PIPELINES
from agentworld.cluster.records.view import ConditionView, SimulatorView, of_digest, parse_object
from agentworld.cluster.retry import ask_until, is_unreachable
from agentworld.errors import ClusterError, PipelineError
from agentworld.operations.probe import probe
from agentworld.operations.serving import deployed_service
from agentworld.recipes.environment import from_environment
from agentworld.records.base import digest_json
from agentworld.runner.run import run_planned
from agentworld.steps.deploy import AliasTarget, plan_by
from agentworld.steps.table import STEPS
from agentworld_pipelines import objects
from agentworld_pipelines.deployment import Target
from agentworld_pipelines.settings import ClusterSettings, namespace_of

_log = logging.getLogger(__name__)

_EVERY_SECONDS = 1.0
_ANY_NUMBER = 1_000_000

_Answer = TypeVar("_Answer")


def deploy_on_cluster(recipe: str, store: str, simulator: str, target: str) -> str:
    """The folder with the serving record of a pinned simulator, given by its own folder.

    `target` is the placement's. Raises InputError for invalid input, and PipelineError if the
    cluster refuses it or never serves it.
    """
    parsed_target, settings = Target.parse(target), from_environment(ClusterSettings)
    namespace = parsed_target.deployment.namespace or namespace_of(settings)
    target_key = {"target": digest_json([parsed_target.model_dump(mode="json"), namespace])}
    serve = partial(_serve, parsed_target, settings, namespace)
    planner = partial(plan_by, serve, target_key)
    return run_planned(STEPS["deploy"], planner, recipe, store, simulator)


def _serve(
    target: Target, settings: ClusterSettings, namespace: str, alias_target: AliasTarget
) -> None:
    objects.check_servable(alias_target.simulator.manifest)
    server = ApiServer(configuration(settings.kubeconfig))
    rollout = _Rollout(Cluster(server, namespace, PIPELINES), alias_target, target)
    if rollout.is_over():
        return
    rollout.serve()
    rollout.ask_once()
    rollout.move()


class _Rollout:
    """The rollout of one simulator and its alias in a namespace, within a time limit."""

    def __init__(self, cluster: Cluster, alias_target: AliasTarget, target: Target) -> None:
        self._cluster = cluster
        self._alias_target = alias_target
        self._target = target
        self._digest = alias_target.simulator.digest
        self._until = time.monotonic() + target.deployment.ready_seconds
        self._name = objects.simulator_name(alias_target)
        self._allowed: set[tuple[str, str]] = set()
        self._is_known = False
        """Whether the API server has answered for our kinds, which are installed together."""

    def is_over(self) -> bool:
        """Whether this step moved the alias last, before it was killed; a person may have since."""
        return objects.moved_by(self._find_alias()) == self._alias_target.key

    def serve(self) -> None:
        """Creates the Simulator, and waits until runs can be opened with it.

        An existing Simulator of this digest under another name is used unchanged.
        """
        listing = self._ask(partial(self._cluster.all, "Simulator"))
        current = of_digest(listing.objects, self._digest)
        if current and current.metadata.name != self._name and current.refusal is None:
            self._name = current.metadata.name
        else:
            manifest = objects.simulator(self._alias_target, self._target, self._name)
            self._ask(partial(self._cluster.apply, manifest))
        self._wait()

    def ask_once(self) -> None:
        """Takes one step through the service, if there is one; this starts a stopped engine."""
        # limited by time and not by attempts, because an engine may take minutes to start
        client = deployed_service(self._digest, attempts=_ANY_NUMBER)
        if client is None:
            return
        try:
            asyncio.run(self._probe(client))
        except TimeoutError as error:
            raise PipelineError(
                f"the simulator service gave no first answer of {self._name}{self._too_late}"
            ) from error
        _log.info("%s has answered", self._name)

    def move(self) -> None:
        """Points the alias at it; an existing canary stays."""
        alias = objects.alias(self._alias_target, self._name)
        self._ask(partial(self._put, alias))
        _log.info("the alias %s means %s", self._alias_target.alias, self._name)

    @property
    def _too_late(self) -> str:
        seconds = self._target.deployment.ready_seconds
        return f" within {seconds} s; mend it and run the step again, or raise ready_seconds"

    def _wait(self) -> None:
        last_conditions: dict[str, ConditionView] = {}
        while True:
            resource = self._find("Simulator", self._name)
            if resource is None:
                raise PipelineError(f"Simulator {self._name} was deleted; run the step again")
            simulator = parse_object(SimulatorView, resource)
            now = objects.conditions(simulator)
            for type_, condition in now.items():
                if last_conditions.get(type_) != condition:
                    _log.info("%s: %s is %s, %s", self._name, type_, condition.status, condition)
            last_conditions = now
            if objects.is_ready(simulator, self._digest):
                return
            if time.monotonic() >= self._until:
                ready = last_conditions.get("Ready") or "no operator has looked at it"
                raise PipelineError(f"Simulator {self._name} is not ready: {ready}{self._too_late}")
            time.sleep(_EVERY_SECONDS)

    async def _probe(self, client: SimulatorClient) -> None:
        async with asyncio.timeout(max(_EVERY_SECONDS, self._until - time.monotonic())):
            await probe(client, self._alias_target.simulator.manifest.artifact or self._digest)

    def _put(self, alias: Object) -> None:
        """Creates or patches the alias; an apply would keep another user's override."""
        if self._find_alias() is None:
            try:
                self._cluster.create(alias)
                return
            except ClusterError as error:
                if error.status != EXISTS or self._find_alias() is None:
                    raise
        self._cluster.merge(alias)

    def _find_alias(self) -> Object | None:
        return self._find("SimulatorAlias", self._alias_target.alias)

    def _find(self, kind: str, name: str) -> Object | None:
        """An object; null if it does not exist."""
        find = partial(self._cluster.get, kind, name)
        resource = self._ask(find, granted=(kind, name) in self._allowed)
        self._allowed.add((kind, name))
        return resource

    def _ask(self, ask: Callable[[], _Answer], *, granted: bool = False) -> _Answer:
        """Retries while the API server is unreachable; raises PipelineError for a refusal."""
        try:
            answer = ask_until(
                ask,
                until=self._until,
                every_seconds=_EVERY_SECONDS,
                report=_log.info,
                kind_is_known=self._is_known,
                granted=granted,
            )
        except ClusterError as error:
            if is_unreachable(error):
                raise
            raise PipelineError(_refusal(error)) from error
        self._is_known = True
        return answer


def _refusal(error: ClusterError) -> str:
    """The message of a webhook, or of the API server."""
    return f"the cluster refuses it: {str(error).rpartition('denied the request: ')[2]}"
