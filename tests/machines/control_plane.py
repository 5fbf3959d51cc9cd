"""A real Kubernetes control plane while a block runs: etcd, API server and controllers.

Without a node nothing runs, so the scheduler is only started with nodes: see nodes.py.
"""

import hashlib
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from kubernetes import client, config

from agentworld.engine.process import LOOPBACK, free_port
from agentworld.engine.process import running as process_running
from machines.program import Program
from waiting import DEADLINE, wait_for

# Audits the requests of our own accounts only.
_AUDIT = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: None, userGroups: ["system:serviceaccounts:kube-system"]}
  - {level: Metadata, userGroups: ["system:serviceaccounts"]}
"""


class Place(NamedTuple):
    """The network of the control plane's programs, and how to connect to them."""

    enter: tuple[str, ...] = ()
    """The prefix of a command that runs it there."""
    bind: str = LOOPBACK
    address: str = LOOPBACK
    """The API server's address for pods; pods cannot connect to a loopback."""
    host: str = LOOPBACK
    """The API server's name for us, which its certificate has."""
    reach: Callable[[int], AbstractContextManager[None]] = nullcontext
    """Forwards a port from there to the loopback."""


HERE = Place()


class Server:
    """A process of the control plane; clients see the same server after a kill and a restart."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._program = Program(name, log)

    def start(self) -> None:
        """Starts it with its data, at the same port."""
        self._program.start(self._command, {})

    def kill(self) -> None:
        """Kills it at once."""
        self._program.kill()

    def check(self) -> None:
        """Fails if it has ended."""
        log_text = self._log.read_text(errors="replace")[-2_000:]
        name = self._program.name
        assert self._program.pid is not None, f"{name} ended; its log says:\n{log_text}"


class ControlPlane(NamedTuple):
    """A cluster, with its administrator's token."""

    folder: Path
    url: str
    certificate: Path
    """The server's certificate, which is self-signed."""
    token: str
    api_server: Server
    controllers: Server | None = None
    """Kubernetes' own controllers; null before they are started."""

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Kills the API server, and starts it again after the block."""
        self.api_server.kill()
        try:
            yield
        finally:
            self.api_server.start()
            wait_for(lambda: is_ready(self))
            if self.controllers:  # they would connect again later after each outage
                self.controllers.kill()
                self.controllers.start()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.kubeconfig_of(self.token)

    def kubeconfig_of(self, token: str, url: str = "") -> Path:
        """The kubeconfig of a token, with another URL if given."""
        cluster = {"server": url or self.url, "certificate-authority": str(self.certificate)}
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "me", "user": {"token": token}}],
        }
        name = hashlib.sha256(f"{token} {url}".encode()).hexdigest()[:8]
        path = self.folder / f"kubeconfig-{name}"
        if not path.exists():  # a program may be reading it
            path.write_text(yaml.safe_dump(kubeconfig))
        return path

    @property
    def client(self) -> client.ApiClient:
        """The administrator's client."""
        return config.new_client_from_config(str(self.kubeconfig))


@contextmanager
def running(folder: Path, place: Place = HERE) -> Iterator[ControlPlane]:
    """Starts a cluster with its files in this folder, and ends it."""
    signer = folder / "accounts.key"
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key_format = PrivateFormat.TraditionalOpenSSL
    signer.write_bytes(key.private_bytes(Encoding.PEM, key_format, NoEncryption()))
    with (
        etcd(folder, place) as store,
        _api_server(folder, place, store, signer) as cluster,
        _controllers(cluster, place, signer) as controllers,
    ):
        yield cluster._replace(controllers=controllers)


@contextmanager
def etcd(folder: Path, place: Place = HERE) -> Iterator[str]:
    """Starts etcd; yields its address."""
    port, peer_url = free_port(), f"http://{LOOPBACK}:{free_port()}"
    url = f"http://{LOOPBACK}:{port}"
    command = [
        *place.enter,
        program("etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",
    ]
    log = folder / "etcd.log"
    with place.reach(port), process_running("etcd", command, {}, port, log) as server:
        server.wait_until_ready("/health", DEADLINE)
        yield url


@contextmanager
def _api_server(folder: Path, place: Place, store: str, signer: Path) -> Iterator[ControlPlane]:
    port, token = free_port(), secrets.token_urlsafe()
    (folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    (folder / "audit.yaml").write_text(_AUDIT)
    command = [
        *place.enter,
        program("kube-apiserver"),
        f"--etcd-servers={store}",
        f"--bind-address={place.bind}",
        f"--advertise-address={place.address}",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--audit-policy-file={folder / 'audit.yaml'}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={signer}",
        f"--service-account-key-file={signer}",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--endpoint-reconciler-type={'none' if place is HERE else 'lease'}",
        "--kubelet-preferred-address-types=InternalIP",
        "--feature-gates=HPAScaleToZero=true",  # on by default since 1.37
    ]
    server = Server("kube-apiserver", command, folder / "kube-apiserver.log")
    url, certificate = f"https://{place.host}:{port}", folder / "apiserver.crt"
    cluster = ControlPlane(folder, url, certificate, token, server)
    with place.reach(port):
        server.start()

        def is_up() -> bool:
            server.check()
            return is_ready(cluster)

        try:
            wait_for(is_up)
            yield cluster
            server.check()
        finally:
            server.kill()


@contextmanager
def _controllers(cluster: ControlPlane, place: Place, signer: Path) -> Iterator[Server]:
    """Garbage collection, accounts, Deployments, Endpoints; does not wait for their start."""
    command = [
        *place.enter,
        program("kube-controller-manager"),
        f"--kubeconfig={cluster.kubeconfig}",
        f"--service-account-private-key-file={signer}",
        f"--root-ca-file={cluster.certificate}",
        "--leader-elect=false",
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--port=0",
        "--secure-port=0",
    ]
    name = "kube-controller-manager"
    server = Server(name, command, cluster.folder / f"{name}.log")
    server.start()
    try:
        yield server
        server.check()
    finally:
        server.kill()


def is_ready(cluster: ControlPlane) -> bool:
    """Whether the API server responds."""
    try:
        if not cluster.certificate.exists():
            return False
        cluster.client.call_api("/readyz", "GET", auth_settings=["BearerToken"])
    except Exception:  # noqa: BLE001 - of urllib3 too, while it does not listen
        return False
    return True


def program(name: str) -> str:
    """The program, by the ecosystem's own convention, or where `make cluster` puts it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "agentworld"
    assets = os.environ.get("KUBEBUILDER_ASSETS", cache / "kubernetes")
    folders = [assets, cache / "kubernetes-cel", Path(sys.executable).parent, os.environ["PATH"]]
    path = shutil.which(name, path=os.pathsep.join(map(str, folders)))
    assert path, f"{name} is not there; `make` with the target of these tests puts it there"
    return path
