"""A real Kubernetes API server with its etcd, without a node, for as long as a block runs."""

import hashlib
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from kubernetes import client, config

from agentworld.engine.process import LOOPBACK, free_port
from agentworld.engine.process import running as process_running
from waiting import wait_for

_READY_SECONDS = 60.0


class ControlPlane(NamedTuple):
    """A cluster, reached by its administrator's token."""

    folder: Path
    url: str
    certificate: Path
    """Of the server; it is its own authority."""
    token: str

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.kubeconfig_of(self.token)

    def kubeconfig_of(self, token: str) -> Path:
        """Of whoever has this token."""
        cluster = {"server": self.url, "certificate-authority": str(self.certificate)}
        told = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "me", "user": {"token": token}}],
        }
        path = self.folder / f"kubeconfig-{hashlib.sha256(token.encode()).hexdigest()[:8]}"
        path.write_text(yaml.safe_dump(told))
        return path

    @property
    def client(self) -> client.ApiClient:
        """The administrator's."""
        return config.new_client_from_config(str(self.kubeconfig))


@contextmanager
def running(folder: Path) -> Iterator[ControlPlane]:
    """Makes a cluster with its files in this folder, and ends it."""
    with _etcd(folder) as store, _api_server(folder, store) as cluster:
        yield cluster


@contextmanager
def _etcd(folder: Path) -> Iterator[str]:
    port, peers = free_port(), f"http://{LOOPBACK}:{free_port()}"
    url = f"http://{LOOPBACK}:{port}"
    command = [
        _program("etcd"),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
    ]
    with process_running("etcd", command, {}, port, folder / "etcd.log") as server:
        server.wait_until_ready("/health", _READY_SECONDS)
        yield url


@contextmanager
def _api_server(folder: Path, store: str) -> Iterator[ControlPlane]:
    port, token, signer = free_port(), secrets.token_urlsafe(), folder / "accounts.key"
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    traditional = PrivateFormat.TraditionalOpenSSL
    signer.write_bytes(key.private_bytes(Encoding.PEM, traditional, NoEncryption()))
    (folder / "tokens.csv").write_text(f"{token},admin,admin,system:masters\n")
    command = [
        _program("kube-apiserver"),
        f"--etcd-servers={store}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={signer}",
        f"--service-account-key-file={signer}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--endpoint-reconciler-type=none",
    ]
    log = folder / "kube-apiserver.log"
    with process_running("kube-apiserver", command, {}, port, log) as server:
        url, certificate = f"https://{LOOPBACK}:{port}", folder / "apiserver.crt"
        cluster = ControlPlane(folder, url, certificate, token)

        def is_ready() -> bool:
            server.check()
            return certificate.exists() and _is_ready(cluster)

        wait_for(is_ready, _READY_SECONDS)
        yield cluster


def _is_ready(cluster: ControlPlane) -> bool:
    try:
        cluster.client.call_api("/readyz", "GET", auth_settings=["BearerToken"])
    except Exception:  # noqa: BLE001 - of urllib3 too, while it does not listen
        return False
    return True


def _program(name: str) -> str:
    """By the ecosystem's own convention, else as `make cluster` leaves them."""
    own = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "agentworld/kubernetes"
    folders = [os.environ.get("KUBEBUILDER_ASSETS", own), Path(sys.executable).parent]
    found = shutil.which(name, path=os.pathsep.join(map(str, folders)))
    assert found, f"{name} is not installed; run `make cluster`"
    return found
