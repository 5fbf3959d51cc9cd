"""A Job upgrades the definitions, but never replaces those of a newer release."""

from copy import deepcopy
from functools import cache

import pytest

import make.chart
from agentworld import __version__
from agentworld.cluster.client import ApiServer, Cluster, configuration
from agentworld.cluster.names import RELEASE
from agentworld.errors import ClusterError
from agentworld_operator import definitions
from agentworld_operator.definitions import upgrade
from agentworld_operator.resources.crd import crd
from agentworld_operator.resources.kinds import KINDS, SIMULATOR
from machines.helm_release import without_cel
from make.operator import RIGHTS, kubeconfig

KIND, NAME = "CustomResourceDefinition", "simulators.agentworld.dev"


@cache
def definitions_by_kind():
    """The definitions of all kinds, from their records; cached, because that takes half a
    second.
    """
    return {kind.kind: crd(kind) for kind in KINDS}


def definition(kind):
    return definitions_by_kind()[kind.kind]


@pytest.fixture(autouse=True)
def _cached_definitions(monkeypatch):
    monkeypatch.setattr(definitions, "crd", definition)


class Definitions:
    """A cluster with these definitions."""

    def __init__(self, *existing):
        self.there = {resource["metadata"]["name"]: resource for resource in existing}

    def get(self, _kind, name):
        return self.there.get(name)

    def apply(self, built):
        self.there[built["metadata"]["name"]] = built


def definition_of_release(release):
    resource = deepcopy(definition(SIMULATOR))
    resource["metadata"]["annotations"] = {RELEASE: release} if release else {}
    return resource


@pytest.mark.parametrize("release", ["", "0.0.9", __version__, "nobody's"])
def test_a_definition_that_no_newer_release_wrote_is_upgraded(release):
    cluster = Definitions(definition_of_release(release))
    messages = upgrade(cluster)
    assert cluster.there == {f"{kind.plural}.agentworld.dev": definition(kind) for kind in KINDS}
    assert messages[0] == f"{NAME} is that of release {__version__}"


@pytest.mark.parametrize("release", ["0.10.0", "0.2.0rc1"])
def test_a_definition_of_a_newer_release_is_kept(release):
    newer = definition_of_release(release)
    cluster = Definitions(newer)
    assert f"stays as release {release} wrote it" in upgrade(cluster)[0]
    assert cluster.there[NAME] is newer


@pytest.mark.waits
def test_the_job_may_upgrade_the_definitions_and_create_no_others(
    kubernetes, namespace, monkeypatch
):
    monkeypatch.setattr(definitions, "crd", lambda kind: without_cel(definition(kind)))
    values = {"definitions": {"upgrade": True}}
    for resource in make.chart.objects(values, namespace=namespace.namespace):
        component = resource["metadata"]["labels"]["app.kubernetes.io/component"]
        if component == "definitions" and resource["kind"] in RIGHTS:
            namespace.call("POST", RIGHTS[resource["kind"]].path(namespace.namespace), resource)
    account = kubeconfig(kubernetes, namespace, "agentworld-definitions")
    cluster = Cluster(ApiServer(configuration(account)), "", "tests")
    before = cluster.get(KIND, NAME)["spec"]
    assert upgrade(cluster)[0] == f"{NAME} is that of release {__version__}"
    assert cluster.get(KIND, NAME)["spec"] == before
    other_definition = without_cel(definition(SIMULATOR))
    other_definition["metadata"]["name"] = "worlds.agentworld.dev"
    with pytest.raises(ClusterError, match="forbidden"):
        cluster.apply(other_definition)
