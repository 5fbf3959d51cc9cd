import pytest

from agentworld_operator.policy.drift import is_as_built

BUILT = {"spec": {"replicas": 2, "args": ["a", "b"], "env": [{"name": "A", "value": "1"}]}}


def test_what_a_server_adds_is_no_difference():
    env = [{"name": "A", "value": "1", "added": True}]
    found = {"spec": {**BUILT["spec"], "env": env, "strategy": "x"}, "status": {}}
    assert is_as_built(BUILT, found)


@pytest.mark.parametrize(
    "change",
    [{"replicas": 3}, {"args": ["a"]}, {"args": ["b", "a"]}, {"env": []}, {"args": None}],
    ids=["a number", "one fewer", "another order", "none", "gone"],
)
def test_what_somebody_changed_is_one(change):
    assert not is_as_built(BUILT, {"spec": BUILT["spec"] | change})


def test_what_is_empty_may_be_left_out():
    assert is_as_built({"limits": {}, "args": []}, {})
    assert not is_as_built({"limits": {"cpu": 1}}, {})
