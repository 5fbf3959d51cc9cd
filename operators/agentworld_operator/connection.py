"""Connects kopf to the API server with the client's credentials."""

from typing import TYPE_CHECKING, Any

import kopf

if TYPE_CHECKING:
    from agentworld.cluster.client import Configuration


def login(configuration: "Configuration", **_: Any) -> kopf.ConnectionInfo:
    """Called by kopf, and again when a token has expired."""
    credential = configuration.get_api_key_with_prefix("authorization") or ""
    scheme, __, token = credential.partition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        scheme=scheme or None,
        token=token or None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )
