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
    told = database("postgres", ["agentworld", "mlflow"])
    urls = [make_url(told[f"{name}-url"].decode()) for name in ("agentworld", "mlflow")]
    assert [url.database for url in urls] == ["agentworld", "mlflow"]
    assert {url.password.encode() for url in urls} == {told["password"]}
    assert {(url.username, url.host) for url in urls} == {("agentworld", "postgres")}


@pytest.mark.waits
def test_a_missing_secret_is_created_and_an_existing_secret_is_kept(kubernetes, namespace):
    assert "agentworld-keys was made" in made(kubernetes, namespace)
    first = namespace.get("Secret", "agentworld-keys")
    assert len(base64.b64decode(first["data"][RUN_TOKENS])) == 32
    assert first["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert "agentworld-keys exists and stays unchanged" in made(kubernetes, namespace)
    assert namespace.get("Secret", "agentworld-keys") == first


def made(kubernetes, namespace):
    """Its output; it may only create Secrets."""
    told = {
        "AGENTWORLD_NAMESPACE": namespace.namespace,
        "AGENTWORLD_KUBECONFIG": str(kubeconfig(kubernetes, namespace, "agentworld-secrets")),
        "AGENTWORLD_KEYS_SECRET": "agentworld-keys",
        "AGENTWORLD_LABELS": '{"app.kubernetes.io/part-of": "agentworld"}',
    }
    done = subprocess.run(
        [sys.executable, "-m", "agentworld_operator.first_secrets"],
        env={**os.environ, **told, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
