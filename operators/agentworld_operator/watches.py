"""Watches that update a cache and report changes.

Only kopf's raw events are used, because its other handlers write to the watched objects.
"""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import kopf
from kopf._cogs.structs.references import Insights  # a type of kopf.operator's own arguments

from agentworld.cluster.api_resources import API_RESOURCES, Object
from agentworld.cluster.names import DIGEST_LABEL
from agentworld.errors import ClusterError
from agentworld_operator.cache import OWN, WATCHED, Cache

OnChange = Callable[[str, Object], None]
"""Called with a kind and an object of it that is new, changed or deleted."""


class Stopped(Exception):
    """A signal has stopped the process."""


class Watches:
    """The watches of one namespace, with credentials from `login`."""

    def __init__(
        self, namespace: str, cache: Cache, on_change: OnChange, login: Callable[..., Any]
    ) -> None:
        self.insights = Insights()
        """kopf's knowledge of the API server."""
        self._namespace = namespace
        self._cache = cache
        self._on_change = on_change
        self._login = login

    async def run(self) -> NoReturn:
        """Raises Stopped if the process gets a signal to stop, which kopf handles, and ClusterError
        if it cannot watch any more.
        """
        try:
            await kopf.operator(
                registry=self._registry(),
                settings=_settings(),
                insights=self.insights,
                namespace=self._namespace,
            )
        except Exception as error:  # a boundary: kopf may fail with any error
            raise ClusterError(
                f"the watches ended ({type(error).__name__}: {error}); restart"
            ) from error
        raise Stopped

    async def check(self) -> None:
        """Raises ClusterError if kopf does not know all kinds to be watched: an API server that has
        just started may not list all of them, and kopf reads them once.
        """
        await self.insights.ready_resources.wait()
        resources = {
            (resource.group, resource.version, resource.plural)
            for resource in self.insights.watched_resources
        }
        if missing := [kind for kind in WATCHED if resource_selector(kind) not in resources]:
            raise ClusterError(f"the API server does not list {', '.join(missing)}; restart")

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, id="login")(self._login)
        for kind in WATCHED:
            self._watch(registry, kind)
        return registry

    def _watch(self, registry: kopf.OperatorRegistry, kind: str) -> None:
        async def watch(*, event: Mapping[str, Any], **_: Any) -> None:
            resource = dict(event["object"])
            if event["type"] != "DELETED":
                changes = self._cache.put(kind, resource)
            else:
                self._cache.drop(kind, resource)
                changes = [resource]
            for change in changes:
                self._on_change(kind, change)

        selector = resource_selector(kind)
        kopf.on.event(*selector, id=f"watch-{kind.lower()}", registry=registry)(watch)


def _settings() -> kopf.OperatorSettings:
    """Watches one namespace and nothing else: no peers, no events, no scan of the cluster."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.scanning.disabled = True
    for kind in WATCHED:
        if kind not in OWN:
            settings.watching.label_selectors[resource_selector(kind)] = DIGEST_LABEL
    return settings


def resource_selector(kind: str) -> tuple[str, str, str]:
    """Group, version and plural, by which kopf finds a kind."""
    resource = API_RESOURCES[kind]
    return resource.group, resource.version, resource.plural
