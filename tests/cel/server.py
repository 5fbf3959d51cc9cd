"""The part of a current Kubernetes that serves custom resources, with CEL and strict fields.

It runs alone: clients use an administrator's certificate, and the Kubernetes to which it would
delegate other decisions is an unused address.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from agentworld.cluster.api_resources import API_RESOURCES
from agentworld.engine.process import LOOPBACK, Server, free_port
from agentworld.engine.process import running as process_running
from agentworld_operator.resources.crd import crd
from agentworld_operator.resources.kinds import Kind
from machines.control_plane import etcd, program
from waiting import wait_for

Object = dict[str, Any]

NAMESPACE = "default"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = {"content-type": "application/merge-patch+json"}
DRY = {"dryRun": "All"}
_STRICT = {"fieldValidation": "Strict"}

# All of these need a complete Kubernetes.
_ADMISSION = (
    "NamespaceLifecycle,MutatingAdmissionPolicy,MutatingAdmissionWebhook,"
    "ValidatingAdmissionPolicy,ValidatingAdmissionWebhook"
)


class Api:
    """An administrator's requests, strictly, as `kubectl` sends them."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def define(self, definition: Object) -> httpx.Response:
        """The answer to a new definition."""
        return self.client.post(DEFINITIONS, params=_STRICT, json=definition)

    def serves(self, kind: Kind) -> bool:
        """Whether the server serves objects of this kind yet."""
        return self.client.get(_path(kind.kind)).is_success

    def definition(self, kind: Kind) -> Object:
        """The stored definition."""
        return self.client.get(f"{DEFINITIONS}/{crd(kind)['metadata']['name']}").json()

    def get(self, kind: str, name: str) -> Object:
        return self.client.get(_path(kind, name)).raise_for_status().json()

    def create(self, resource: Object, **query: str) -> httpx.Response:
        path = API_RESOURCES[resource["kind"]].path(NAMESPACE)
        return self.client.post(path, params=_STRICT | query, json=resource)

    def replace(self, resource: Object, **query: str) -> httpx.Response:
        """Replaces any stored version of the object."""
        kind, name = resource["kind"], resource["metadata"]["name"]
        updated = resource | {"metadata": self.get(kind, name)["metadata"]}
        return self.client.put(_path(kind, name), params=_STRICT | query, json=updated)

    def patch(
        self, kind: str, name: str, body: Object, part: str = "", **query: str
    ) -> httpx.Response:
        """A merge patch; a part is a subresource."""
        path = "/".join(filter(None, [_path(kind, name), part]))
        return self.client.patch(path, params=_STRICT | query, json=body, headers=MERGE)

    def delete(self, resource: Object) -> None:
        self.client.delete(_path(resource["kind"], resource["metadata"]["name"])).raise_for_status()


@contextmanager
def running(folder: Path) -> Iterator[Api]:
    """Starts a server with its files in this folder, and stops it."""
    administrator = _administrator(folder)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(_NOWHERE))
    port = free_port()
    with etcd(folder) as store:
        command = [
            program("apiextensions-apiserver"),
            f"--etcd-servers={store}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--cert-dir={folder}",
            f"--client-ca-file={administrator}",
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            "--authentication-skip-lookup",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--disable-admission-plugins={_ADMISSION}",
            "--enable-priority-and-fairness=false",
        ]
        log = folder / "apiextensions-apiserver.log"
        with process_running("apiextensions-apiserver", command, {}, port, log) as server:
            wait_for(lambda: _is_up(server, folder, port))
            with _client(folder, port) as client:
                yield Api(client)


# No process listens at this address, and no request uses it.
_NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "nowhere",
    "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "nobody"}}],
    "clusters": [{"name": "nowhere", "cluster": {"server": f"http://{LOOPBACK}:1"}}],
    "users": [{"name": "nobody", "user": {}}],
}


def _path(kind: str, name: str = "") -> str:
    return API_RESOURCES[kind].path(NAMESPACE, name)


def _is_up(server: Server, folder: Path, port: int) -> bool:
    server.check()
    try:
        with _client(folder, port) as client:
            return client.get("/healthz").is_success
    except (OSError, httpx.TransportError):  # before it has its certificate, and before it listens
        return False


def _client(folder: Path, port: int) -> httpx.Client:
    context = ssl.create_default_context(cafile=folder / "apiserver.crt")
    context.load_cert_chain(folder / "administrator.pem")
    return httpx.Client(
        base_url=f"https://{LOOPBACK}:{port}", verify=context, trust_env=False, timeout=30
    )


def _administrator(folder: Path) -> Path:
    """A self-signed certificate; its key is beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [
        (NameOID.COMMON_NAME, "administrator"),
        (NameOID.ORGANIZATION_NAME, "system:masters"),
    ]
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    now = datetime.now(UTC)
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(usage, critical=False)
        .sign(key, SHA256())
    )
    path, pem = folder / "administrator.crt", certificate.public_bytes(Encoding.PEM)
    path.write_bytes(pem)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (folder / "administrator.pem").write_bytes(pem + secret)
    return path
