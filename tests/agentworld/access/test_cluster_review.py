"""Service accounts of a real cluster: its own tokens and responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest
import yaml

from agentworld.access.checked import CheckedAccess
from agentworld.access.reloaded import ReloadedAccess
from agentworld.access.token_review import claimed_account, cluster_review
from agentworld.errors import AccessError
from make.access import TOKENS
from waiting import wait_for

if TYPE_CHECKING:
    from kubernetes import client

pytestmark = pytest.mark.waits

NAMESPACE = "team-a"
SERVICE, TRAINER = "agentworld", "trainer"
Review = Callable[[str], str | None]


@pytest.fixture(scope="module")
def core(control_plane) -> client.CoreV1Api:
    """A namespace with the account of our service, which may only create token reviews."""
    from kubernetes import client

    core = client.CoreV1Api(control_plane.client)
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    for name in (SERVICE, TRAINER):
        core.create_namespaced_service_account(NAMESPACE, {"metadata": {"name": name}})
    rbac = client.RbacAuthorizationV1Api(control_plane.client)
    rule = {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"]}
    rbac.create_cluster_role(
        {"metadata": {"name": SERVICE}, "rules": [{**rule, "verbs": ["create"]}]}
    )
    rbac.create_cluster_role_binding(
        {
            "metadata": {"name": SERVICE},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": SERVICE,
            },
            "subjects": [{"kind": "ServiceAccount", "namespace": NAMESPACE, "name": SERVICE}],
        }
    )
    attributes = {"group": "authentication.k8s.io", "resource": "tokenreviews", "verb": "create"}
    user = f"system:serviceaccount:{NAMESPACE}:{SERVICE}"
    access_review = {"spec": {"user": user, "resourceAttributes": attributes}}
    authorization = client.AuthorizationV1Api(control_plane.client)
    # The server applies rights a moment after it stores them.
    wait_for(lambda: authorization.create_subject_access_review(access_review).status.allowed)
    return core


def new_token(core: client.CoreV1Api, account: str = TRAINER, audience: str | None = "agentworld"):
    """A token like a projected one of a pod; without an audience it is for the cluster itself."""
    spec = {"audiences": [audience] if audience else []}
    body = {"spec": spec}
    return core.create_namespaced_service_account_token(account, NAMESPACE, body).status.token


@pytest.fixture(scope="module")
def kubeconfig(control_plane, core):
    return control_plane.kubeconfig_of(new_token(core, SERVICE, None))


@pytest.fixture(scope="module")
def review(kubeconfig) -> Review:
    review_token = cluster_review(kubeconfig=kubeconfig)
    return lambda token: asyncio.run(review_token(token))


def test_a_token_for_the_agentworld_audience_authenticates_its_account(core, review):
    token = new_token(core)
    assert claimed_account(token) == review(token) == "team-a/trainer"


@pytest.mark.parametrize("audience", [None, "vault"])
def test_a_token_for_another_audience_authenticates_no_account(core, review, audience):
    assert review(new_token(core, audience=audience)) is None


def test_a_changed_token_authenticates_no_account(core, review):
    head, claims, signature = new_token(core).split(".")
    forged_signature = signature[:10] + ("A" if signature[10] != "A" else "B") + signature[11:]
    assert review(".".join([head, claims, forged_signature])) is None


def test_the_token_of_a_deleted_account_authenticates_no_account(core, review):
    core.create_namespaced_service_account(NAMESPACE, {"metadata": {"name": "gone"}})
    token = new_token(core, "gone")
    assert review(token) == "team-a/gone"
    core.delete_namespaced_service_account("gone", NAMESPACE)
    wait_for(lambda: review(token) is None)  # the cluster caches a review for ten seconds


def test_a_service_without_the_right_to_review_tokens_raises_unavailable(control_plane, core):
    review = cluster_review(kubeconfig=control_plane.kubeconfig_of(new_token(core, TRAINER, None)))
    with pytest.raises(AccessError, match="did not review") as error:
        asyncio.run(review(new_token(core)))
    assert error.value.kind == "unavailable"


def test_an_account_of_the_access_file_gets_its_tenant_and_others_are_rejected(
    core, kubeconfig, tmp_path
):
    path = tmp_path / "access.yaml"
    accounts = {f"{NAMESPACE}/{TRAINER}": ["agent"]}
    path.write_text(yaml.safe_dump({"tenants": {"acme": {"service_accounts": accounts}}}))
    connect = partial(cluster_review, kubeconfig=kubeconfig)
    access = CheckedAccess(ReloadedAccess(path), TOKENS, connect)
    caller = asyncio.run(access.caller(new_token(core)))
    assert (caller.tenant, caller.roles) == ("acme", {"agent"})
    with pytest.raises(AccessError):
        asyncio.run(access.caller(new_token(core, SERVICE)))
