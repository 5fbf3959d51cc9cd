"""`agentworld pipeline check`, against the tests' Kubeflow Pipelines server and an API server."""

import json
import secrets
from collections.abc import Iterator

import pytest
import yaml

from agentworld_pipelines.checking import PATTERN
from fakes import kfp_server
from make.operator import Namespace
from make.pages import ROOT

pytestmark = pytest.mark.waits


@pytest.fixture
def server(monkeypatch) -> Iterator[kfp_server.KfpServer]:
    with kfp_server.running() as server:
        monkeypatch.setenv("AGENTWORLD_KFP_URL", server.url)
        yield server


@pytest.fixture
def kubeflow(control_plane, monkeypatch) -> Namespace:
    """A namespace with Argo's controller as Kubeflow Pipelines 2.17.2 sets it up."""
    name = f"kubeflow-{secrets.token_hex(4)}"
    namespace = Namespace(control_plane.client, name)
    namespace.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    namespace.call("POST", f"/api/v1/namespaces/{name}/configmaps", config_map("2", "OnError"))
    namespace.call("POST", f"/apis/apps/v1/namespaces/{name}/deployments", controller())
    monkeypatch.setenv("AGENTWORLD_KUBECONFIG", str(control_plane.kubeconfig))
    return namespace


def config_map(limit, policy):
    strategy = {"limit": limit, "retryPolicy": policy}
    defaults = {"spec": {"templateDefaults": {"retryStrategy": strategy}}}
    return {
        "metadata": {"name": "workflow-controller-configmap"},
        "data": {"workflowDefaults": yaml.safe_dump(defaults)},
    }


def controller():
    labels = {"app": "workflow-controller"}
    env = [{"name": PATTERN, "value": "(?i)(preempt|evict|pod deleted)"}]
    container = {"name": "workflow-controller", "image": "argo:v4.0.5", "env": env}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "workflow-controller"}, "spec": spec}


def set_up(kubeflow, limit, policy):
    path = f"/api/v1/namespaces/{kubeflow.namespace}/configmaps/workflow-controller-configmap"
    kubeflow.call("PATCH", path, config_map(limit, policy))


def test_pipeline_check_lists_missing_settings_until_all_are_set(call, server, kubeflow):
    words = f"pipeline check --server {server.url} --kubeflow-namespace {kubeflow.namespace}"
    result = call(words)
    assert result.code == 11
    assert [line.split()[0] for line in result.out.splitlines()] == ["retryPolicy", "limit"]
    assert result.error == f"error: settings of {server.url} are missing: 2; set them\n"
    set_up(kubeflow, "0", "Always")
    result = call(words)
    assert (result.code, result.error) == (0, "")
    assert result.out == "a step's pod is started again after any failure\n"
    guide = (ROOT / "docs/guides/cluster.md").read_text()
    assert f"$ agentworld pipeline check\n   {result.out}" in guide


def test_pipeline_check_requires_a_namespace_for_a_multi_user_server(
    call, server, kubeflow, monkeypatch
):
    set_up(kubeflow, "0", "Always")
    server.is_multi_user = True
    words = f"pipeline check --kubeflow-namespace {kubeflow.namespace} --json"
    (problem,) = json.loads(call(words).out)["missing"]
    assert problem.startswith("AGENTWORLD_KFP_NAMESPACE is not set")
    monkeypatch.setenv("AGENTWORLD_KFP_NAMESPACE", "team-a")
    assert json.loads(call(words).out) == {"missing": []}


def test_pipeline_check_fails_if_the_settings_cannot_be_read(call, server, kubeflow):
    result = call(f"pipeline check --server {server.url} --kubeflow-namespace elsewhere")
    assert result.code == 11
    assert "name Kubeflow's namespace with --kubeflow-namespace" in result.out
    assert kubeflow.namespace not in result.out


def test_pipeline_check_fails_without_a_configured_cluster(call, server, monkeypatch):
    monkeypatch.delenv("AGENTWORLD_KUBECONFIG", raising=False)
    result = call(f"pipeline check --server {server.url}")
    assert result.code == 11
    assert result.out.startswith("Argo's settings cannot be read (no cluster is configured")
