import pytest
from pydantic import ValidationError

from agentworld.cluster.records.serving import NodePool, Toleration, Weights


@pytest.mark.parametrize(
    "fields",
    [
        {"operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "value": ""},
        {"key": "spot", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 0},
        {"key": "spot", "value": "yes", "effect": "NoExecute", "toleration_seconds": 0},
    ],
)
def test_a_toleration_that_kubernetes_accepts_is_valid(fields):
    assert Toleration.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"key": "spot", "operator": "Exists", "value": "yes"}, "leave the value out"),
        ({}, "without a key every taint is meant"),
        ({"value": "yes"}, "without a key every taint is meant"),
        ({"key": "spot", "tolerationSeconds": 3}, "by `effect: NoExecute` alone"),
        ({"key": "not a label"}, "should match pattern"),
        ({"key": "spot", "value": "not a label"}, "should match pattern"),
        ({"key": "spot", "effect": "NoExecute", "tolerationSeconds": -1}, "greater than or equal"),
    ],
)
def test_a_toleration_that_kubernetes_refuses_is_refused(fields, words):
    with pytest.raises(ValidationError, match=words):
        Toleration.model_validate(fields)


def test_a_node_pool_has_at_most_64_tolerations():
    toleration = Toleration(operator="Exists")
    assert NodePool(tolerations=(toleration,) * 64)
    with pytest.raises(ValidationError):
        NodePool(tolerations=(toleration,) * 65)


_IMAGE = f"mirror.example/world@sha256:{'0' * 64}"


@pytest.mark.parametrize(
    "fields", [{"claim": "weights"}, {"image": _IMAGE}, {"url": "s3://models", "cache": "models"}]
)
def test_weights_in_one_place_are_valid(fields):
    assert Weights.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "one of the three"),
        ({"claim": "weights", "url": "s3://models"}, "one of the three"),
        ({"claim": "weights", "image": _IMAGE}, "one of the three"),
        ({"claim": "weights", "cache": "models"}, "leave the cache out"),
        ({"image": "mirror.example/world:7"}, "should match pattern"),
    ],
)
def test_weights_without_exactly_one_valid_place_are_refused(fields, words):
    with pytest.raises(ValidationError, match=words):
        Weights.model_validate(fields)
