"""Watches that keep a cache, and say what changed.

Only kopf's raw events are used: its other handlers write to the objects that they watch.
"""

from collections.abc import Callable, Mapping
from typing import Any

import kopf

from agentworld_operator.resources.names import DIGEST_LABEL
from agentworld_operator.resources.places import PLACES
from agentworld_operator.watched import OWN, WATCHED, Cache
from agentworld_pipelines.api_server import Object

Changed = Callable[[str, Object], None]
"""Hears of a kind and of an object of it that is new, another one, or gone."""


def registry(cache: Cache, changed: Changed, login: Callable[..., Any]) -> kopf.OperatorRegistry:
    """Handlers for all that is watched, with credentials from `login`."""
    made = kopf.OperatorRegistry()
    kopf.on.login(registry=made, id="login")(login)
    for kind in WATCHED:
        _watch(made, kind, cache, changed)
    return made


def _watch(made: kopf.OperatorRegistry, kind: str, cache: Cache, changed: Changed) -> None:
    async def watch(*, event: Mapping[str, Any], **_: Any) -> None:
        found = dict(event["object"])
        if event["type"] != "DELETED":
            news = cache.put(kind, found)
        else:
            cache.drop(kind, found)
            news = [found]
        for each in news:
            changed(kind, each)

    kopf.on.event(*named(kind), id=f"watch-{kind.lower()}", registry=made)(watch)


def settings() -> kopf.OperatorSettings:
    """Watches in one namespace and nothing else: no peers, no events, no scan of the cluster."""
    told = kopf.OperatorSettings()
    told.posting.enabled = False
    told.peering.standalone = True
    told.scanning.disabled = True
    for kind in WATCHED:
        if kind not in OWN:
            told.watching.label_selectors[named(kind)] = DIGEST_LABEL
    return told


def named(kind: str) -> tuple[str, str, str]:
    """Group, version and plural, as kopf finds a kind."""
    place = PLACES[kind]
    return place.group, place.version, place.plural
