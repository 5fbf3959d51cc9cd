"""How the API server is reached: by the pod's own service account, or as a kubeconfig says."""

from pathlib import Path
from typing import Any

import kopf
from kubernetes import client, config

from agentworld.errors import InputError


def configuration(kubeconfig: Path | None) -> client.Configuration:
    """For the client; raises InputError where there is no cluster to reach."""
    told = client.Configuration()
    told.retries = 0  # who asks decides whether to ask again
    try:
        if kubeconfig:
            config.load_kube_config(str(kubeconfig), client_configuration=told)
        else:
            config.load_incluster_config(client_configuration=told)
    except config.ConfigException as error:
        raise InputError(
            f"there is no cluster to watch ({error}); run in one, or set AGENTWORLD_KUBECONFIG"
        ) from error
    return told


def api_client(told: client.Configuration) -> client.ApiClient:
    """What a Cluster asks with."""
    return client.ApiClient(told)


def login(told: client.Configuration, **_: Any) -> kopf.ConnectionInfo:
    """The same for kopf, which asks again when a token has run out."""
    scheme, __, token = (told.get_api_key_with_prefix("authorization") or "").partition(" ")
    return kopf.ConnectionInfo(
        server=told.host,
        ca_path=told.ssl_ca_cert,
        scheme=scheme or None,
        token=token or None,
        certificate_path=told.cert_file,
        private_key_path=told.key_file,
    )
