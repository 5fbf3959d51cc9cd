"""The webhook's certificates: the leader renews them in a Secret and publishes the bundle."""

import asyncio
import base64
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from agentworld.cluster.api_resources import Object, type_fields
from agentworld.cluster.client import Cluster
from agentworld_operator.authority import Files, apply_decision, read_certificates
from agentworld_operator.periodic import every
from agentworld_operator.policy.certificates import decide

_log = logging.getLogger(__name__)

_CONFIGURATION = "ValidatingWebhookConfiguration"


class CertificateTarget(NamedTuple):
    """Where the certificates are, and for whom."""

    secret: str
    configuration: str
    """The ValidatingWebhookConfiguration that names who is believed."""
    names: Sequence[str]


class CertificateRenewal:
    """A round that is done again changes nothing."""

    def __init__(
        self, cluster: Cluster, target: CertificateTarget, now: Callable[[], datetime]
    ) -> None:
        self._cluster = cluster
        self._target = target
        self._now = now
        self._is_over = False

    async def run(self, every_seconds: float) -> None:
        """Works until it is cancelled; what fails is tried again in the next round."""
        try:
            await every(every_seconds, partial(asyncio.to_thread, self.round))
        finally:
            self._is_over = True  # a thread cannot be cancelled, and another one may lead by now

    def round(self) -> None:
        """Renews at most one certificate, then publishes the bundle. Blocks."""
        secret = self._cluster.get("Secret", self._target.secret)
        if secret is None:
            # Who may create Secrets may have a token made for any account of the namespace.
            _log.warning("there is no Secret %s; `helm upgrade` makes it anew", self._target.secret)
            return
        files = _files(secret)
        now = self._now()
        decision = decide(read_certificates(files), self._target.names, now)
        if decision != "keep":
            files = apply_decision(files, decision, self._target.names, now)
            if self._is_over:
                return
            self._write(secret, files)
            _log.info("the webhook's certificates: %s", decision)
        self._publish(base64.b64encode(files["ca.crt"]).decode())

    def _write(self, secret: Object, files: Files) -> None:
        data = {name: base64.b64encode(content).decode() for name, content in files.items()}
        self._cluster.replace({**type_fields("Secret"), **secret, "data": data})

    def _publish(self, bundle: str) -> None:
        name = self._target.configuration
        configuration = self._cluster.get(_CONFIGURATION, name)
        if configuration is None:
            _log.warning("there is no %s %s; nothing is guarded", _CONFIGURATION, name)
            return
        clients = [webhook["clientConfig"] for webhook in configuration.get("webhooks", ())]
        if self._is_over or all(client.get("caBundle") == bundle for client in clients):
            return
        for client in clients:
            client["caBundle"] = bundle
        self._cluster.replace({**type_fields(_CONFIGURATION), **configuration})


def _files(secret: Object) -> Files:
    entries = secret.get("data") or {}
    return {name: base64.b64decode(content) for name, content in entries.items()}
