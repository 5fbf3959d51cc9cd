import json

import pytest

from agentworld.errors import InputError
from agentworld_pipelines.deployment import Target
from agentworld_pipelines.placement import Placement, load_placement

DEFAULT = "default: {volumes: {stores: /stores}}\n"
FIELDS = "image: mirror.example/vllm, claim: stores"


def load(tmp_path, text: str) -> Placement:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    return load_placement(path)


def test_without_a_deployment_the_step_has_no_target(tmp_path):
    assert load(tmp_path, DEFAULT).target == ""


def test_the_target_contains_the_deployment_and_the_mount_path_of_its_claim(tmp_path):
    placement = load(tmp_path, DEFAULT + f"deploy: {{{FIELDS}, bounds: {{max: 4}}}}")
    target = Target.parse(placement.target)
    assert (target.deployment, target.mounted) == (placement.deploy, "/stores")


def test_the_claim_may_be_mounted_only_in_the_deploy_step(tmp_path):
    text = f"steps: {{deploy: {{volumes: {{stores: /here}}}}}}\ndeploy: {{{FIELDS}}}"
    assert json.loads(load(tmp_path, text).target)["mounted"] == "/here"


PROBLEMS = {
    f"{FIELDS}, secret: bucket": "claim and secret are both given; leave one",
    f"{FIELDS}, cache: models": "claim and cache are both given; leave one",
    "image: mirror.example/vllm:7, claim: stores": "at deploy.image",
    "image: 'vllm@sha256:1', claim: stores": "at deploy.image",
    f"{FIELDS}, replicas: 0": "at deploy.replicas",
    f"{FIELDS}, bounds: {{min: 2}}": "raise max, or lower min",
    f"{FIELDS}, tenants: [a, a]": "tenants names one twice",
    f"{FIELDS}, tenants: [Acme]": "at deploy.tenants.0",
    f"{FIELDS}, namespace: Two Words": "at deploy.namespace",
    f"{FIELDS}, startup_seconds: 5": "at deploy.startup_seconds",
    f"{FIELDS}, ready_seconds: 0": "at deploy.ready_seconds",
    f"{FIELDS}, limits: {{nvidia.com/gpu: 1}}": "at deploy.limits.nvidia.com/gpu",
    f"{FIELDS}, weights: {{}}": "at deploy.weights",
    "image: vllm, claim: other": "deploy.claim is other and the step deploy has stores among",
}


@pytest.mark.parametrize(("deploy", "problem"), PROBLEMS.items())
def test_an_invalid_deployment_is_refused_when_the_placement_is_loaded(tmp_path, deploy, problem):
    with pytest.raises(InputError) as error:
        load(tmp_path, DEFAULT + f"deploy: {{{deploy}}}")
    assert problem in str(error.value)


def test_a_store_in_a_bucket_needs_no_claim(tmp_path):
    target = Target.parse(load(tmp_path, "deploy: {image: vllm, secret: bucket}").target)
    assert (target.deployment.claim, target.deployment.secret, target.mounted) == (
        None,
        "bucket",
        None,
    )


def test_a_deploy_step_without_the_volume_of_the_claim_is_refused(tmp_path):
    text = DEFAULT + f"steps: {{deploy: {{volumes: {{}}}}}}\ndeploy: {{{FIELDS}}}"
    with pytest.raises(InputError, match="the step deploy has none among its volumes"):
        load(tmp_path, text)


@pytest.mark.parametrize("text", ["{", "{}", '{"deployment": {}, "mounted": "/stores"}'])
def test_an_invalid_target_is_refused(text):
    with pytest.raises(InputError, match="the step has an invalid target at .*; compile"):
        Target.parse(text)
