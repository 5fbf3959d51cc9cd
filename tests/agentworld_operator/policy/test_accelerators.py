"""The accelerators of replicas, as their pods request them."""

from agentworld_operator.policy.accelerators import describe, describe_replicas


def pod(name, limits, selector=None):
    containers = [{"name": "engine", "resources": {"limits": limits}}]
    return {
        "metadata": {"name": name},
        "spec": {"containers": containers, "nodeSelector": selector},
    }


def test_accelerators_are_described_with_their_node_pool():
    limits = {"cpu": 8, "memory": "64Gi", "hugepages-2Mi": "1Gi", "nvidia.com/gpu": 2}
    assert describe(limits, {"pool": "h100"}) == "2 x nvidia.com/gpu on pool=h100"
    assert describe({"cpu": 8}, {}) == "cpu"


def test_equal_replicas_are_described_once_and_different_replicas_by_pod():
    first, second = pod("a", {"nvidia.com/gpu": 1}), pod("b", {"nvidia.com/gpu": 1})
    assert describe_replicas([first, second]) == ("1 x nvidia.com/gpu",)
    other = pod("c", {}, {"pool": "old"})
    assert describe_replicas([other, first]) == ("a: 1 x nvidia.com/gpu", "c: cpu on pool=old")
    assert describe_replicas([]) == ()
