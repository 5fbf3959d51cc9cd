"""How the API server is watched: with what the client asks it with."""

from typing import Any

import kopf
from kubernetes import client


def login(told: client.Configuration, **_: Any) -> kopf.ConnectionInfo:
    """For kopf, which asks again when a token has run out."""
    scheme, __, token = (told.get_api_key_with_prefix("authorization") or "").partition(" ")
    return kopf.ConnectionInfo(
        server=told.host,
        ca_path=told.ssl_ca_cert,
        scheme=scheme or None,
        token=token or None,
        certificate_path=told.cert_file,
        private_key_path=told.key_file,
    )
