"""How the API server is watched: with what the client asks it with."""

from typing import TYPE_CHECKING, Any

import kopf

if TYPE_CHECKING:
    from agentworld.cluster.client import Configuration


def login(configuration: "Configuration", **_: Any) -> kopf.ConnectionInfo:
    """For kopf, which asks again when a token has run out."""
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
