from hypothesis import given
from hypothesis import strategies as st

from agentworld.data.hash_uniform import hash_uniform


@given(st.lists(st.text() | st.integers()))
def test_hash_uniform_is_deterministic_and_from_zero_to_one(names):
    assert 0 <= hash_uniform(*names) < 1
    assert hash_uniform(*names) == hash_uniform(*names)


def test_hash_uniform_has_a_uniform_distribution():
    drawn = [hash_uniform("a", number) for number in range(10_000)]
    assert abs(sum(drawn) / len(drawn) - 0.5) < 0.02
    assert abs(sum(each < 0.1 for each in drawn) / len(drawn) - 0.1) < 0.02
