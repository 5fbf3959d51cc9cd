"""A real Kubernetes with two nodes that run pods, while a block runs.

Each node is a containerd, a kubelet and a kube-proxy in separate namespaces, on a network that only
they and the control plane use: this machine gets no link, no address, no rule and no setting. All
of it ends with the process that started it, and the next run removes the files of a killed run.
"""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kubernetes import client

from agentworld.engine.process import LOOPBACK, Server, free_port
from agentworld.engine.process import running as process_running
from machines.control_plane import ControlPlane, Place, program
from machines.control_plane import running as control_plane_running
from machines.images import FOLDER as IMAGES
from machines.images import built, pause, postgres
from machines.unpacked import UnpackedImages
from waiting import wait_for

_TOOLS = Path(__file__).parent
_FOLDER = IMAGES.parent / "nodes"
_IMAGES = UnpackedImages(_FOLDER / "images")
_CGROUPS = Path("/sys/fs/cgroup")
_ROUTER = "10.99.0.1"
_FILE_SERVER = _TOOLS.parent / "fakes/file_server.py"
_FILES_PORT = 8080
_NAMES = ("node-1", "node-2")
_FREE_GIB = 15
"""Free disk space for all images, packed and unpacked."""


class Node(NamedTuple):
    """A machine of the cluster."""

    name: str
    number: int
    server: Server

    def is_up(self) -> bool:
        """Whether its containerd responds."""
        command = ["nsenter", f"--target={self.server.process.pid}", "--mount", "ctr", "version"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


class Cluster(NamedTuple):
    """A cluster with nodes."""

    control: ControlPlane
    nodes: tuple[Node, ...]
    wire: int
    """The id of a process in the network that connects every pod and Service."""

    @property
    def client(self) -> client.ApiClient:
        """The administrator's client."""
        return self.control.client

    @contextmanager
    def reached(self, address: str, port: int) -> Iterator[str]:
        """Forwards a pod's or a Service's port to this machine's loopback; yields HOST:PORT."""
        own_port = free_port()
        with _relay(self.control.folder, self.wire, address, port, own_port):
            yield f"{LOOPBACK}:{own_port}"

    @contextmanager
    def serving(self, folder: Path) -> Iterator[tuple[str, Path]]:
        """A folder's URL for pods, and the log of their requests."""
        log = self.control.folder / "file_server.log"
        words = (_ROUTER, str(_FILES_PORT), str(folder))
        command = [*_on(self.wire), sys.executable, str(_FILE_SERVER), *words]
        with process_running("file server", command, {}, 0, log):
            yield f"http://{_ROUTER}:{_FILES_PORT}", log


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Starts a cluster with its logs in this folder, and ends it. Its nodes have all images."""
    assert os.geteuid() == 0, "nodes mount and make networks; run this as root"
    images = [built(target) for target in ("control", "train", "engine-cpu")]
    with _only_one(), ExitStack() as stack:
        free = shutil.disk_usage(_FOLDER).free >> 30
        assert free >= _FREE_GIB, f"{_FOLDER} has {free} GiB free; make it {_FREE_GIB} for nodes"
        _IMAGES.update([*images, postgres(), pause()])
        enter = stack.enter_context
        network = enter(_wire(folder))
        control = enter(_control_plane(folder, network))
        nodes = tuple(
            enter(_node(folder, control, network, name, number))
            for number, name in enumerate(_NAMES, start=1)
        )
        cluster = Cluster(control, nodes, network)
        wait_for(partial(_are_ready, cluster))
        yield cluster


@contextmanager
def _only_one() -> Iterator[None]:
    """Waits for another cluster to end, and removes the leftovers of a killed one."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _remove_traces()
        try:
            yield
        finally:
            _remove_traces()


def _remove_traces() -> None:
    for name in _NAMES:
        shutil.rmtree(_FOLDER / name, ignore_errors=True)
        for group in _CGROUPS.glob(f"*/agentworld-{name}"):
            wait_for(partial(_is_removed, group))


def _is_removed(group: Path) -> bool:
    """A killed process stays in its group until the kernel has removed it."""
    try:
        for path, _, _ in os.walk(group, topdown=False):
            Path(path).rmdir()
    except OSError:
        return False
    return True


@contextmanager
def _wire(folder: Path) -> Iterator[int]:
    """A separate network with a switch for the control plane and the nodes."""
    command = ["unshare", "--net", "sleep", "infinity"]
    with process_running("wire", command, {}, 0, folder / "wire.log") as server:
        pid = server.process.pid
        wait_for(lambda: _has_own_network(pid))
        for words in (
            "ip link set lo up",
            "ip link add switch type bridge",
            f"ip address add {_ROUTER}/24 dev switch",
            "ip link set switch up",
            *(f"ip route add 10.98.{number}.0/24 via {_address(number)}" for number in (1, 2)),
            f"ip route add 10.96.0.0/16 via {_address(1)}",
            "sysctl -qw net.ipv4.ip_forward=1",
        ):
            _run(*_on(pid), *words.split())
        yield pid


def _address(node: int) -> str:
    return f"10.99.0.1{node}"


def _has_own_network(pid: int) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    return False


def _run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}: {result.stderr}"


def _on(pid: int) -> tuple[str, ...]:
    return ("nsenter", f"--net=/proc/{pid}/ns/net")


@contextmanager
def _control_plane(folder: Path, network: int) -> Iterator[ControlPlane]:
    place = Place(
        enter=_on(network),
        bind="0.0.0.0",  # only in the separate network
        address=_ROUTER,
        host="localhost",
        reach=lambda port: _relay(folder, network, LOOPBACK, port, port),
    )
    with control_plane_running(folder, place) as control, ExitStack() as stack:
        scheduler = [program("kube-scheduler"), f"--kubeconfig={control.kubeconfig}"]
        scheduler += ["--leader-elect=false", "--port=0", "--secure-port=0"]
        names = [sys.executable, str(_TOOLS / "names.py"), str(control.kubeconfig), _ROUTER]
        for name, command in (("kube-scheduler", scheduler), ("names", names)):
            log = folder / f"{name}.log"
            stack.enter_context(process_running(name, [*place.enter, *command], {}, 0, log))
        yield control


@contextmanager
def _relay(folder: Path, pid: int, address: str, port: int, own_port: int) -> Iterator[None]:
    words = [str(_TOOLS / "relay.py"), str(pid), address, str(port), str(own_port)]
    command = [sys.executable, *words]
    with process_running("relay", command, {}, own_port, folder / "relay.log"):
        wait_for(lambda: _is_heard(own_port))
        yield


def _is_heard(port: int) -> bool:
    with suppress(OSError), socket.create_connection((LOOPBACK, port)):
        return True
    return False


@contextmanager
def _node(
    folder: Path, control: ControlPlane, network: int, name: str, number: int
) -> Iterator[Node]:
    """Its containers' folder is reused by the next cluster; its logs are in `folder`."""
    node_folder = _FOLDER / name
    url = f"https://{_ROUTER}:{control.url.rpartition(':')[2]}"
    kubeconfig = control.kubeconfig_of(control.token, url)
    programs = Path(program("kubelet")).parent
    command = [
        *("setpriv", "--pdeathsig", "KILL"),  # it ignores TERM
        *("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *(str(_TOOLS / "node.sh"), name, str(number), str(node_folder), str(folder)),
        *(str(programs), str(kubeconfig), pause().name),
    ]
    _IMAGES.link(node_folder / "var/lib/containerd")
    with process_running(name, command, {}, 0, folder / f"{name}.log") as server:
        pid = server.process.pid
        wait_for(lambda: _has_own_network(pid))
        link = f"ip link add wire{number} type veth peer name eth0 netns {pid}"
        _run(*_on(network), *link.split())
        _run(*_on(network), *f"ip link set wire{number} master switch up".split())
        node = Node(name, number, server)
        wait_for(node.is_up)
        yield node


def _are_ready(cluster: Cluster) -> bool:
    for node in cluster.nodes:
        node.server.check()
    conditions = [
        (condition.type, condition.status)
        for node in client.CoreV1Api(cluster.client).list_node().items
        for condition in node.status.conditions
    ]
    return conditions.count(("Ready", "True")) == len(cluster.nodes)
