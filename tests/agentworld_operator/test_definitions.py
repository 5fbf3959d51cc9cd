"""The definitions are upgraded by a Job, and never by an older release than the one there."""

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
def written():
    """The definitions of all kinds, from their records; cached, because that takes half a
    second.
    """
    return {kind.kind: crd(kind) for kind in KINDS}


def definition(kind):
    return written()[kind.kind]


@pytest.fixture(autouse=True)
def _written_once(monkeypatch):
    monkeypatch.setattr(definitions, "crd", definition)


class Definitions:
    """A cluster that has them, or not."""

    def __init__(self, *there):
        self.there = {each["metadata"]["name"]: each for each in there}

    def get(self, _kind, name):
        return self.there.get(name)

    def apply(self, built):
        self.there[built["metadata"]["name"]] = built


def written_by(release):
    other = deepcopy(definition(SIMULATOR))
    other["metadata"]["annotations"] = {RELEASE: release} if release else {}
    return other


@pytest.mark.parametrize("release", ["", "0.0.9", __version__, "nobody's"])
def test_a_definition_that_no_newer_release_wrote_is_upgraded(release):
    cluster = Definitions(written_by(release))
    told = upgrade(cluster)
    assert cluster.there == {f"{kind.plural}.agentworld.dev": definition(kind) for kind in KINDS}
    assert told[0] == f"{NAME} is that of release {__version__}"


@pytest.mark.parametrize("release", ["0.10.0", "0.2.0rc1"])
def test_a_definition_of_a_newer_release_is_kept(release):
    newer = written_by(release)
    cluster = Definitions(newer)
    assert f"stays as release {release} wrote it" in upgrade(cluster)[0]
    assert cluster.there[NAME] is newer


@pytest.mark.waits
def test_the_job_may_upgrade_the_definitions_and_create_no_others(
    kubernetes, namespace, monkeypatch
):
    monkeypatch.setattr(definitions, "crd", lambda kind: without_cel(definition(kind)))
    values = {"definitions": {"upgrade": True}}
    for each in make.chart.objects(values, namespace=namespace.namespace):
        component = each["metadata"]["labels"]["app.kubernetes.io/component"]
        if component == "definitions" and each["kind"] in RIGHTS:
            namespace.call("POST", RIGHTS[each["kind"]].path(namespace.namespace), each)
    account = kubeconfig(kubernetes, namespace, "agentworld-definitions")
    cluster = Cluster(ApiServer(configuration(account)), "", "tests")
    before = cluster.get(KIND, NAME)["spec"]
    assert upgrade(cluster)[0] == f"{NAME} is that of release {__version__}"
    assert cluster.get(KIND, NAME)["spec"] == before
    other = without_cel(definition(SIMULATOR))
    other["metadata"]["name"] = "worlds.agentworld.dev"
    with pytest.raises(ClusterError, match="forbidden"):
        cluster.apply(other)
