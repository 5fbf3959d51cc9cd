"""Two real nodes: our own images run on them as a team's cluster would run them."""

import json
import urllib.request

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.stream import stream

import images
from waiting import wait_for

pytestmark = pytest.mark.slow

NAMESPACE = "team-b"
LABELS = {"app": "web"}
PORT = 8000
SECONDS = 60.0
RESTRICTED = {
    "runAsNonRoot": True,
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
# Tells who it is, whose user it runs as, and whether it could write to its root.
SERVER = f"""
import http.server, os, socket
try:
    open("/written", "w")
except OSError as error:
    refused = error.strerror
os.chdir("/tmp")
open("index.html", "w").write(socket.gethostname())
print(os.getuid(), refused, flush=True)
http.server.test(http.server.SimpleHTTPRequestHandler, port={PORT})
"""
# Asks the Service by its name, each address of the headless one, and the API server.
CALLER = f"""
import json, socket, urllib.request
from kubernetes import client, config
def page(host):
    return urllib.request.urlopen(f"http://{{host}}:{PORT}", timeout=10).read().decode()
found = socket.getaddrinfo("each.{NAMESPACE}.svc.cluster.local", {PORT}, type=socket.SOCK_STREAM)
config.load_incluster_config()
print(json.dumps({{
    "service": page("web"),
    "each": sorted(page(address[4][0]) for address in found),
    "version": client.VersionApi().get_code().git_version,
}}))
"""


def pod(program: str, **more: object) -> dict:
    """Of the control image, named by its digest."""
    container = {
        **more,
        "name": "main",
        "image": images.built("control").pinned_name,
        "imagePullPolicy": "Never",
        "command": ["python", "-c", program],
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    return {"containers": [container], "volumes": [{"name": "tmp", "emptyDir": {}}]}


def spread_server() -> dict:
    """Ready once it answers; no two of them on one node."""
    apart = {"labelSelector": {"matchLabels": LABELS}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    probe = {"httpGet": {"port": PORT}, "periodSeconds": 1}
    return {**pod(SERVER, readinessProbe=probe), "affinity": {"podAntiAffinity": rule}}


@pytest.fixture(scope="module")
def core(cluster) -> client.CoreV1Api:
    cluster.load(images.built("control"))
    core = client.CoreV1Api(cluster.client)
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    wait_for(lambda: core.list_namespaced_service_account(NAMESPACE).items)
    return core


@pytest.fixture(scope="module")
def web(cluster, core) -> dict[str, str]:
    """Two pods behind a Service and a headless one; the node of each."""
    core.create_namespaced_service(NAMESPACE, service("web"))
    core.create_namespaced_service(NAMESPACE, service("each", clusterIP="None"))
    template = {"metadata": {"labels": LABELS}, "spec": spread_server()}
    wanted = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
    apps = client.AppsV1Api(cluster.client)
    apps.create_namespaced_deployment(NAMESPACE, {"metadata": {"name": "web"}, "spec": wanted})

    def is_available() -> bool:
        status = apps.read_namespaced_deployment("web", NAMESPACE).status
        return status.available_replicas == 2

    wait_for(is_available, SECONDS)
    return {each.metadata.name: each.spec.node_name for each in pods(core)}


def service(name: str, **spec: str) -> dict:
    ports = [{"port": PORT}]
    return {"metadata": {"name": name}, "spec": {"selector": LABELS, "ports": ports, **spec}}


def pods(core) -> list[client.V1Pod]:
    return core.list_namespaced_pod(NAMESPACE, label_selector="app=web").items


def test_both_nodes_are_ready(cluster):
    nodes = client.CoreV1Api(cluster.client).list_node().items
    states = {
        each.metadata.name: condition.status
        for each in nodes
        for condition in each.status.conditions
        if condition.type == "Ready"
    }
    assert states == {"node-1": "True", "node-2": "True"}


def test_replicas_of_our_image_are_spread_over_the_nodes(web):
    assert sorted(web.values()) == ["node-1", "node-2"]


def test_our_image_runs_without_rights_and_its_logs_can_be_read(core, web):
    for name in web:
        log = core.read_namespaced_pod_log(name, NAMESPACE)
        assert log.splitlines()[0] == "65532 Read-only file system"


def test_a_pod_reaches_a_service_each_of_its_pods_and_the_api_server(core, web):
    body = {"metadata": {"name": "caller"}, "spec": {**pod(CALLER), "restartPolicy": "Never"}}
    core.create_namespaced_pod(NAMESPACE, body)

    def has_ended() -> bool:
        phase = core.read_namespaced_pod("caller", NAMESPACE).status.phase
        return phase in ("Succeeded", "Failed")

    wait_for(has_ended, SECONDS)
    # As text: the client reads what looks like JSON, and prints it otherwise.
    log = core.read_namespaced_pod_log("caller", NAMESPACE, _preload_content=False).data
    said = json.loads(log)
    assert said["service"] in web
    assert said["each"] == sorted(web)
    assert said["version"].startswith("v1.")


def test_a_service_is_reached_from_here(cluster, core, web):
    address = core.read_namespaced_service("web", NAMESPACE).spec.cluster_ip
    with cluster.reached(address, PORT) as host:

        def answers() -> bool:
            try:
                return urllib.request.urlopen(f"http://{host}", timeout=5).read().decode() in web
            except OSError:
                return False

        wait_for(answers)


def test_a_container_that_is_killed_is_started_again(core, web):
    name = min(web)
    interrupt = ["python", "-c", "import os, signal; os.kill(1, signal.SIGINT)"]
    stream(core.connect_get_namespaced_pod_exec, name, NAMESPACE, command=interrupt, stdout=True)

    def is_back() -> bool:
        (status,) = core.read_namespaced_pod(name, NAMESPACE).status.container_statuses
        return status.restart_count == 1 and status.ready

    wait_for(is_back, SECONDS)


@pytest.mark.usefixtures("web")
def test_a_namespace_with_pods_ends(core):
    core.delete_namespace(NAMESPACE)

    def is_gone() -> bool:
        try:
            core.read_namespace(NAMESPACE)
        except ApiException as error:
            return error.status == 404
        return False

    wait_for(is_gone, SECONDS)
