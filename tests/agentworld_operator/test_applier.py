"""Applied children that changed later, on a cluster in memory."""

import asyncio
import copy

import pytest

from agentworld_operator.applier import Applier
from agentworld_operator.cache import Cache

LABELS = {"part": "ours"}
OWNERS = [{"uid": "owner"}]
BUILT = {
    "kind": "Deployment",
    "metadata": {"name": "engine", "labels": LABELS, "ownerReferences": OWNERS},
    "spec": {"cpu": "1000m"},
}


class Rewording:
    """A cluster that writes `1` for `1000m`, and counts applied objects."""

    def __init__(self):
        self.applied = 0

    def apply(self, built):
        self.applied += 1
        stored = copy.deepcopy(built)
        stored["metadata"] |= {"uid": "u", "generation": 1, "resourceVersion": str(self.applied)}
        return stored | {"spec": {"cpu": "1"}}


@pytest.fixture
def cluster():
    return Rewording()


@pytest.fixture
def cache():
    return Cache()


@pytest.fixture
def apply(cluster, cache):
    applier = Applier(cluster, cache)
    return lambda: asyncio.run(applier.apply(BUILT))


def test_an_object_normalized_by_the_server_is_applied_once(cluster, apply):
    apply()
    apply()
    assert cluster.applied == 1


@pytest.mark.parametrize("changes", [{"labels": {}}, {"ownerReferences": []}], ids=str)
def test_removed_labels_or_owners_are_restored_without_a_new_generation(
    cluster, cache, apply, changes
):
    apply()
    deployment = copy.deepcopy(cache.get("Deployment", "engine"))
    deployment["metadata"] |= {"resourceVersion": "9", **changes}
    cache.put("Deployment", deployment)
    apply()
    assert cluster.applied == 2
