"""What the cluster of the tests does by itself, as one that a team has."""

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from waiting import wait_for

pytestmark = pytest.mark.slow

NAMESPACE = "self-acting"


@pytest.fixture(scope="module")
def core(control_plane) -> client.CoreV1Api:
    core = client.CoreV1Api(control_plane.client)
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    return core


def test_who_deletes_an_owner_deletes_its_child(core):
    owner = core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": "owner"}})
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.metadata.uid}
    child = {"metadata": {"name": "child", "ownerReferences": [owned]}}
    core.create_namespaced_config_map(NAMESPACE, child)
    core.delete_namespaced_config_map("owner", NAMESPACE)
    wait_for(lambda: is_gone(core, "child"), seconds=10)


def is_gone(core: client.CoreV1Api, name: str) -> bool:
    try:
        core.read_namespaced_config_map(name, NAMESPACE)
    except ApiException as error:
        return error.status == 404
    return False


def test_a_namespace_gets_an_account_and_ends(core):
    wait_for(lambda: core.list_namespaced_service_account(NAMESPACE).items)
    core.delete_namespace(NAMESPACE)
    wait_for(lambda: NAMESPACE not in [each.metadata.name for each in core.list_namespace().items])
