"""Secrets that are generated once, on a real API server."""

import base64
import os
import subprocess
import sys

import pytest
from sqlalchemy import make_url

from agentworld.access.secret import RUN_TOKENS
from agentworld.signing.keys import SIGNER
from agentworld_operator.first_secrets import database, keys
from make.operator import kubeconfig


def test_each_call_generates_new_keys():
    first, second = keys(), keys()
    assert {*first} == {SIGNER, RUN_TOKENS}
    assert all(first[name] != second[name] for name in first)


def test_each_database_has_an_address_with_the_same_password():
    secret = database("postgres", ["agentworld", "mlflow"])
    urls = [make_url(secret[f"{name}-url"].decode()) for name in ("agentworld", "mlflow")]
    assert [url.database for url in urls] == ["agentworld", "mlflow"]
    assert {url.password.encode() for url in urls} == {secret["password"]}
    assert {(url.username, url.host) for url in urls} == {("agentworld", "postgres")}


@pytest.mark.waits
def test_a_missing_secret_is_created_and_an_existing_secret_is_kept(kubernetes, namespace):
    assert "agentworld-keys was made" in create_secrets(kubernetes, namespace)
    secret = namespace.get("Secret", "agentworld-keys")
    assert len(base64.b64decode(secret["data"][RUN_TOKENS])) == 32
    assert secret["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "agentworld-keys exists and stays unchanged" in create_secrets(kubernetes, namespace)
    assert namespace.get("Secret", "agentworld-keys") == secret


def create_secrets(kubernetes, namespace):
    """Runs the command, which may only create Secrets, and returns its output."""
    variables = {
        "AGENTWORLD_NAMESPACE": namespace.namespace,
        "AGENTWORLD_KUBECONFIG": str(kubeconfig(kubernetes, namespace, "agentworld-secrets")),
        "AGENTWORLD_KEYS_SECRET": "agentworld-keys",
        "AGENTWORLD_LABELS": '{"app.kubernetes.io/part-of": "agentworld"}',
    }
    result = subprocess.run(
        [sys.executable, "-m", "agentworld_operator.first_secrets"],
        env={**os.environ, **variables, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
