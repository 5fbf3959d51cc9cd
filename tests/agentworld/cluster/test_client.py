import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentworld.cluster.client import ApiServer, Cluster, configuration
from agentworld.errors import ClusterError, InputError, UnknownPath
from fakes import api_server

OBJECT = "/apis/agentworld.io/v1/namespaces/worlds/simulators/one"
TOKEN = api_server.token("team-a/trainer")
REVIEW = {
    "apiVersion": "authentication.k8s.io/v1",
    "kind": "TokenReview",
    "spec": {"token": TOKEN},
}


@pytest.fixture
def server(tmp_path):
    with api_server.running(tmp_path) as server:
        yield server


def review(server):
    return ApiServer(configuration(server.kubeconfig)).call("POST", api_server.PATH, body=REVIEW)


def test_a_call_returns_the_response_of_the_server(server):
    assert review(server) == {**REVIEW, "status": {}}


@pytest.mark.parametrize(
    ("response", "status"), [(403, 403), (404, 404), (500, 500), (b"<html>", 0)]
)
def test_a_failed_call_raises_a_cluster_error_with_its_status(server, response, status):
    server.says[TOKEN] = response
    with pytest.raises(ClusterError) as error:
        review(server)
    assert error.value.status == status


def test_the_error_contains_the_servers_message(server):
    with pytest.raises(ClusterError, match=f"GET /api/v1/pods: {api_server.FORBIDDEN}"):
        ApiServer(configuration(server.kubeconfig)).find("/api/v1/pods")


def test_find_returns_none_for_a_missing_object(server):
    details = {"name": "one", "group": "agentworld.io", "kind": "simulators"}
    server.absent[OBJECT] = json.dumps({"kind": "Status", "reason": "NotFound", "details": details})
    assert ApiServer(configuration(server.kubeconfig)).find(OBJECT) is None


@pytest.mark.parametrize(
    "body",
    [
        "404 page not found",
        "",
        "[]",
        "{}",
        '{"details": {}}',
        '{"details": null}',
        '{"details": 1}',
    ],
)
def test_an_unknown_path_is_an_error_and_not_a_missing_object(server, body):
    server.absent[OBJECT] = body
    with pytest.raises(UnknownPath, match=f"GET {OBJECT}: 404 Not Found") as error:
        ApiServer(configuration(server.kubeconfig)).find(OBJECT)
    assert (error.value.status, error.value.retryable) == (404, False)


@pytest.mark.parametrize(
    ("or_current", "variable"), [(False, "AGENTWORLD_KUBECONFIG"), (True, "KUBECONFIG")]
)
def test_outside_of_a_cluster_the_error_names_the_variable_to_set(
    monkeypatch, or_current, variable
):
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", "/nowhere")
    with pytest.raises(InputError, match=f"run in a cluster, or set {variable}$"):
        configuration(None, or_current=or_current)


def test_the_users_current_cluster_is_used_only_on_request(server, monkeypatch):
    monkeypatch.setattr(
        "kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(server.kubeconfig)
    )
    host = configuration(Path(server.kubeconfig)).host
    assert configuration(None, or_current=True).host == host
    with pytest.raises(InputError):
        configuration(None)


@pytest.mark.compute
def test_access_and_the_command_line_do_not_import_kubernetes():
    imports = "import agentworld.access.checked, agentworld_cli.main, sys"
    command = [sys.executable, "-c", f"{imports}; print('kubernetes' in sys.modules)"]
    env = {"PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


class RecordingServer:
    """A server that records requests."""

    def __init__(self, answer=None):
        self.answer = answer or {}
        self.requests = []

    def call(self, method, path, **options):
        self.requests.append((method, path, options.get("query")))
        return self.answer


def test_an_object_of_a_list_has_its_api_version_and_kind():
    page = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "one"}}]}
    listing = Cluster(RecordingServer(page), "here", "us").all("ConfigMap")
    (config_map,) = listing.objects
    assert (config_map["apiVersion"], config_map["kind"], listing.version) == ("v1", "ConfigMap", 7)


def test_every_write_names_the_field_manager():
    server = RecordingServer()
    cluster = Cluster(server, "here", "us")
    manifest = {"kind": "SimulatorAlias", "metadata": {"name": "world"}}
    path = "/apis/agentworld.dev/v1alpha1/namespaces/here/simulatoraliases/world"
    cluster.apply(manifest)
    cluster.merge(manifest)
    cluster.write_status("SimulatorAlias", "world", {})
    manager = ("fieldManager", "us")
    assert server.requests == [
        ("PATCH", path, [manager, ("force", "true")]),
        ("PATCH", path, [manager]),
        ("PATCH", f"{path}/status", [manager]),
    ]
