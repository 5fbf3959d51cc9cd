"""A bucket that is accessed as a service account of a cluster, without a static key.

In EKS a webhook gives a pod the same three variables and a token that the cluster signed; here moto
simulates STS and S3, and does not check tokens.
"""

import hashlib
import os
import subprocess
import sys

import boto3
import pytest

from agentworld.storage.fetch import fetch_files
from fakes.s3 import BUCKET

pytestmark = pytest.mark.waits

_WEIGHTS = b"weights"
_FETCH = f"""
import sys
from pathlib import Path
from {fetch_files.__module__} import fetch_files
digest = "sha256:{hashlib.sha256(_WEIGHTS).hexdigest()}"
fetch_files(sys.argv[1], {{"model.safetensors": digest}}, Path(sys.argv[2]))
"""


def fetch(url, folder, **variables):
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_ACCESS")}
    del env["AWS_SECRET_ACCESS_KEY"]
    env |= {"AWS_EC2_METADATA_DISABLED": "true", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", _FETCH, url, folder]
    return subprocess.run(command, env=env | variables, capture_output=True, text=True, check=False)


def test_weights_are_fetched_only_with_the_service_account_of_a_pod(bucket, tmp_path):
    boto3.client("s3").put_object(Bucket=BUCKET, Key="world/model.safetensors", Body=_WEIGHTS)
    (tmp_path / "token").write_text("signed by a cluster")
    identity = {
        "AWS_ROLE_ARN": "arn:aws:iam::111122223333:role/reader",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
    }
    result = fetch(f"{bucket}/world", tmp_path, **identity)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "model.safetensors").read_bytes() == b"weights"
    failure = fetch(f"{bucket}/world", tmp_path / "other")
    assert "credentials" in failure.stderr.lower()
