"""Watches that keep a cache, and say what changed.

Only kopf's raw events are used: its other handlers write to the objects that they watch.
"""

from collections.abc import Callable, Mapping
from typing import Any

import kopf

from agentworld_operator.resources.names import DIGEST_LABEL
from agentworld_operator.resources.places import PLACES
from agentworld_operator.cache import OWN, WATCHED, Cache
from agentworld_pipelines.api_server import Object

Changed = Callable[[str, Object], None]
"""Hears of a kind and of an object of it that is new, another one, or gone."""


def registry(cache: Cache, changed: Changed, login: Callable[..., Any]) -> kopf.OperatorRegistry:
    """Handlers for all that is watched, with credentials from `login`."""
    operator_registry = kopf.OperatorRegistry()
    kopf.on.login(registry=operator_registry, id="login")(login)
    for kind in WATCHED:
        _watch(operator_registry, kind, cache, changed)
    return operator_registry


def _watch(
    operator_registry: kopf.OperatorRegistry, kind: str, cache: Cache, changed: Changed
) -> None:
    async def watch(*, event: Mapping[str, Any], **_: Any) -> None:
        resource = dict(event["object"])
        if event["type"] != "DELETED":
            news = cache.put(kind, resource)
        else:
            cache.drop(kind, resource)
            news = [resource]
        for each in news:
            changed(kind, each)

    kopf.on.event(*resource_selector(kind), id=f"watch-{kind.lower()}", registry=operator_registry)(
        watch
    )


def settings() -> kopf.OperatorSettings:
    """Watches in one namespace and nothing else: no peers, no events, no scan of the cluster."""
    operator_settings = kopf.OperatorSettings()
    operator_settings.posting.enabled = False
    operator_settings.peering.standalone = True
    operator_settings.scanning.disabled = True
    for kind in WATCHED:
        if kind not in OWN:
            operator_settings.watching.label_selectors[resource_selector(kind)] = DIGEST_LABEL
    return operator_settings


def resource_selector(kind: str) -> tuple[str, str, str]:
    """Group, version and plural, as kopf finds a kind."""
    place = PLACES[kind]
    return place.group, place.version, place.plural
