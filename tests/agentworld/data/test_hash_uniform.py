from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.hash_uniform import hash_uniform


@given(st.lists(st.text() | st.integers()))
def test_hash_uniform_is_deterministic_and_from_zero_to_one(names):
    assert 0 <= hash_uniform(*names) < 1
    assert hash_uniform(*names) == hash_uniform(*names)


def test_hash_uniform_has_a_uniform_distribution():
    values = [hash_uniform("a", number) for number in range(10_000)]
    assert abs(sum(values) / len(values) - 0.5) < 0.02
    assert abs(sum(value < 0.1 for value in values) / len(values) - 0.1) < 0.02
