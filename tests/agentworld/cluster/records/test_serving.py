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
def test_a_toleration_that_kubernetes_takes_is_one(fields):
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
def test_one_that_kubernetes_refuses_is_refused_here(fields, words):
    with pytest.raises(ValidationError, match=words):
        Toleration.model_validate(fields)


def test_there_are_no_more_of_them_than_an_api_server_can_check():
    one = Toleration(operator="Exists")
    assert NodePool(tolerations=(one,) * 64)
    with pytest.raises(ValidationError):
        NodePool(tolerations=(one,) * 65)


_IMAGE = f"mirror.example/world@sha256:{'0' * 64}"


@pytest.mark.parametrize(
    "fields", [{"claim": "weights"}, {"image": _IMAGE}, {"url": "s3://models", "cache": "models"}]
)
def test_weights_are_in_one_place(fields):
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
def test_weights_that_are_in_none_or_in_two_are_refused(fields, words):
    with pytest.raises(ValidationError, match=words):
        Weights.model_validate(fields)
