"""The files of one campaign, and the commands of its processes."""

import base64
import os
import sys
from pathlib import Path
from typing import NamedTuple

import make.access
from agentworld.access.secret import RUN_TOKENS, ensure_secret
from agentworld.cluster.api_resources import type_fields
from agentworld.engine.process import LOOPBACK
from agentworld.signing.keys import SIMULATOR_KEYS, ensure_signer
from campaigns.harness.processes import Command
from campaigns.operator.clocks import Clocks
from machines.control_plane import ControlPlane
from make.operator import Namespace, Object, kubeconfig

LEASE_SECONDS = 5.0
RENEWAL_SECONDS = LEASE_SECONDS * 2 / 3
ASK_SECONDS = 0.5
LOOK_SECONDS = 10.0
SETTLE_SECONDS = 8.0
"""Longer than the time-out of a request to the webhook."""
_WEBHOOK_SECONDS = 5
VERIFIER_IMAGE = "registry.example/control@sha256:1"


class Place(NamedTuple):
    """A folder, and a namespace of a cluster."""

    folder: Path
    cluster: ControlPlane
    namespace: Namespace
    token: str
    """The token of the operator's account."""

    @property
    def ledger(self) -> Path:
        """SQLite's file."""
        return self.folder / "ledger.db"

    @property
    def stalls(self) -> Path:
        """The journal of each process's stalls."""
        return self.folder / "stalls.jsonl"

    def mounted(self, operator: str) -> Path:
        """The folder in which a kubelet mounts the webhook's certificate."""
        return self.folder / f"mounted-{operator}"

    def clocks(self, operator: str) -> Clocks:
        """An operator's clocks."""
        return Clocks(self.folder / f"clocks-{operator}")

    def operator(self, name: str, api_url: str, service_url: str, webhook_port: int) -> Command:
        """The command of one replica."""
        token = self.folder / "operator.key"
        token.write_text(make.access.key("acme-operator"))
        settings = {
            "namespace": self.namespace.namespace,
            "identity": name,
            "kubeconfig": self.cluster.kubeconfig_of(self.token, api_url),
            "service_url": service_url,
            "service_token": token,
            "verifier_image": VERIFIER_IMAGE,
            "lease_seconds": LEASE_SECONDS,
            "look_seconds": LOOK_SECONDS,
            "ask_seconds": ASK_SECONDS,
            "webhook_port": webhook_port,
            "webhook_host": LOOPBACK,
            "webhook_folder": self.mounted(name),
            "webhook_reload_seconds": 0.5,
            "webhook_settle_seconds": SETTLE_SECONDS,
        }
        journals = {"CLOCKS": str(self.folder / f"clocks-{name}"), "STALLS": str(self.stalls)}
        environment = _environment(settings) | journals
        return [sys.executable, "-m", "campaigns.operator.jumping"], environment

    def service(self, port: int) -> Command:
        """The command of the simulator service, with a ledger in a file."""
        keys = self.folder / "keys"
        ensure_signer(keys / SIMULATOR_KEYS)
        ensure_secret(keys / RUN_TOKENS)
        settings = {
            "namespace": self.namespace.namespace,
            "kubeconfig": kubeconfig(self.cluster, self.namespace, "agentworld-service"),
            "ledger_url": f"sqlite:///{self.ledger}",
            "objects_url": self.folder / "objects",
            "mirror_url": self.folder / "mirror",
            "keys": keys,
            "access": make.access.access_file(self.folder),
            "host": LOOPBACK,
            "port": port,
        }
        return [sys.executable, "-m", "agentworld.serving.main"], _environment(settings)

    def configuration(self, port: int, bundle: bytes) -> Object:
        """The webhook's configuration, which refuses changes while no operator runs."""
        namespace = self.namespace.namespace
        webhooks = [
            _webhook("move.agentworld.dev", ["CREATE", "UPDATE"], "Fail", namespace),
            _webhook("delete.agentworld.dev", ["DELETE"], "Ignore", namespace),
        ]
        client = {
            "url": f"https://{LOOPBACK}:{port}/admit",
            "caBundle": base64.b64encode(bundle).decode(),
        }
        for webhook in webhooks:
            webhook["clientConfig"] = client
        kind = type_fields("ValidatingWebhookConfiguration")
        return {**kind, "metadata": {"name": self.configuration_name}, "webhooks": webhooks}

    @property
    def configuration_name(self) -> str:
        """The chart's name of the configuration."""
        return f"agentworld-{self.namespace.namespace}"


def _environment(settings: dict[str, object]) -> dict[str, str]:
    variables = {f"AGENTWORLD_{name.upper()}": str(value) for name, value in settings.items()}
    return variables | {"PYTHONPATH": os.pathsep.join(sys.path)}


def _webhook(name: str, operations: list[str], policy: str, namespace: str) -> Object:
    rule = {
        "apiGroups": ["agentworld.dev"],
        "apiVersions": ["v1alpha1"],
        "operations": operations,
        "resources": ["simulators", "simulatoraliases"],
    }
    return {
        "name": name,
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"guarded": namespace}},
        "failurePolicy": policy,
        "sideEffects": "NoneOnDryRun",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": _WEBHOOK_SECONDS,
    }
