"""Kopf's view of an API server, without a server."""

import asyncio

import pytest
from kopf._cogs.structs.references import Resource

from agentworld.errors import ClusterError
from agentworld_operator.cache import WATCHED, Cache
from agentworld_operator.watches import Watches, resource_selector


@pytest.mark.parametrize("missing", [None, "SimulatorAlias", "Pod"])
def test_a_kind_that_cannot_be_watched_raises_an_error(missing):
    """As with an API server that has just started."""
    watches = Watches("here", Cache(), lambda *_: None, lambda **_: None)
    for kind in WATCHED:
        if kind != missing:
            watches.insights.watched_resources.add(Resource(*resource_selector(kind)))
    watches.insights.ready_resources.set()
    if missing is None:
        asyncio.run(watches.check())
    else:
        with pytest.raises(ClusterError, match=f"does not list {missing}; restart"):
            asyncio.run(watches.check())
