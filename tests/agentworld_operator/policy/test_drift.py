import pytest

from agentworld_operator.policy.drift import is_as_built

BUILT = {"spec": {"replicas": 2, "args": ["a", "b"], "env": [{"name": "A", "value": "1"}]}}


def test_fields_added_by_the_server_are_no_drift():
    env = [{"name": "A", "value": "1", "added": True}]
    current = {"spec": {**BUILT["spec"], "env": env, "strategy": "x"}, "status": {}}
    assert is_as_built(BUILT, current)


@pytest.mark.parametrize(
    "change",
    [{"replicas": 3}, {"args": ["a"]}, {"args": ["b", "a"]}, {"env": []}, {"args": None}],
    ids=["a number", "one fewer", "another order", "none", "gone"],
)
def test_a_changed_field_is_drift(change):
    assert not is_as_built(BUILT, {"spec": BUILT["spec"] | change})


def test_a_missing_empty_field_is_no_drift():
    assert is_as_built({"limits": {}, "args": []}, {})
    assert not is_as_built({"limits": {"cpu": 1}}, {})
