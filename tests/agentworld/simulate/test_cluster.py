import asyncio
import json
from collections import Counter

import pytest

import make
from agentworld.errors import ClusterError, Conflict, NotFound
from agentworld.simulate.cluster import ClusterSimulators
from agentworld.simulate.on_demand import Found
from agentworld.storage.objects import ObjectStore

STABLE, CANARY = make.manifest(control_text="stable"), make.manifest(control_text="canary")


def simulator(name, manifest, **status):
    identity = {"manifest": json.loads(manifest.canonical)}
    told = {"digest": manifest.digest} | status
    return {"metadata": {"name": name}, "spec": {"identity": identity}, "status": told}


class Cluster:
    """What an API server tells, by path."""

    def __init__(self):
        self.objects = {
            "simulators/stable": simulator("stable", STABLE),
            "simulators/canary": simulator("canary", CANARY),
            "simulatoraliases/world": {"spec": {"simulator": "stable"}},
        }
        self.asked: Counter[str] = Counter()
        self.failing: ClusterError | None = None

    def read(self, path):
        self.asked[path] += 1
        if self.failing:
            raise self.failing
        if path == "simulators":
            kind = "simulators/"
            return {"items": [each for name, each in self.objects.items() if kind in name]}
        return self.objects.get(path)


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def simulators(cluster, tmp_path):
    return made(cluster, tmp_path)


def made(cluster, folder, draw=lambda: 0):
    objects = ObjectStore(str(folder / "objects"))
    return ClusterSimulators(cluster.read, objects, lambda manifest: Found(manifest, None), draw)


def found(simulators, digest):
    return asyncio.run(simulators.find(digest)).manifest


def meant(simulators, alias="world"):
    return asyncio.run(simulators.resolve(alias))


def test_a_simulator_is_found_by_its_digest(simulators):
    assert found(simulators, CANARY.digest) == CANARY


def test_one_that_was_found_once_is_found_without_the_cluster(simulators, cluster, tmp_path):
    found(simulators, STABLE.digest)
    cluster.objects.clear()
    cluster.failing = ClusterError("gone")
    assert found(made(cluster, tmp_path), STABLE.digest) == STABLE


def test_a_manifest_is_read_from_where_it_is_kept(simulators, cluster, tmp_path):
    file = tmp_path / "manifest.json"
    file.write_bytes(STABLE.canonical)
    identity = {"reference": {"url": str(file), "digest": STABLE.digest}}
    cluster.objects["simulators/stable"]["spec"] = {"identity": identity}
    assert found(simulators, STABLE.digest) == STABLE


def test_one_that_nobody_created_is_not_there(simulators):
    with pytest.raises(NotFound, match="no Simulator has the digest"):
        found(simulators, make.digest("nobody's"))


def test_an_alias_means_the_simulator_that_it_names(simulators):
    assert meant(simulators) == STABLE.digest


@pytest.mark.parametrize(
    ("drawn", "manifest"), [(0, CANARY), (9, CANARY), (10, STABLE), (99, STABLE)]
)
def test_a_canary_gets_its_share_of_runs(cluster, tmp_path, drawn, manifest):
    canary = {"simulator": "canary", "percent": 10}
    cluster.objects["simulatoraliases/world"]["spec"]["canary"] = canary
    assert meant(made(cluster, tmp_path, lambda: drawn)) == manifest.digest


@pytest.mark.parametrize("alias", ["nobody", "../simulators/stable", "a b"])
def test_an_alias_that_nobody_made_is_not_there(simulators, alias):
    with pytest.raises(NotFound, match="there is no alias"):
        meant(simulators, alias)


def test_an_alias_of_nothing_says_what_is_missing(simulators, cluster):
    del cluster.objects["simulators/stable"]
    with pytest.raises(NotFound, match="no Simulator stable"):
        meant(simulators)


def test_one_that_the_operator_has_not_looked_at_is_asked_for_again(simulators, cluster):
    cluster.objects["simulators/stable"]["status"] = {}
    with pytest.raises(ClusterError) as failed:
        meant(simulators)
    assert failed.value.retryable


def test_one_whose_weights_are_others_is_not_opened(simulators, cluster):
    wrong = {"type": "Verified", "status": "False", "message": "model.safetensors differs"}
    cluster.objects["simulators/stable"]["status"]["conditions"] = [wrong]
    with pytest.raises(Conflict, match=r"model\.safetensors differs"):
        meant(simulators)


def test_a_cluster_that_does_not_answer_is_told_as_such(simulators, cluster):
    cluster.failing = ClusterError("gone")
    with pytest.raises(ClusterError):
        meant(simulators)
    with pytest.raises(ClusterError):
        found(simulators, STABLE.digest)
