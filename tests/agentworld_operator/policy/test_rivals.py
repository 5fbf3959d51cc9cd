from agentworld_operator.policy.rivals import rival
from make import records

DIGEST = records.digest("one")


def resource(name, created, uid):
    return {"metadata": {"name": name, "creationTimestamp": created, "uid": uid}}


OLD, NEW = resource("old", "2026-01-01", "u1"), resource("new", "2026-01-02", "u0")


def test_the_oldest_simulator_of_a_digest_is_served():
    assert rival(OLD, DIGEST, [OLD, NEW]) is None


def test_a_younger_simulator_is_refused_with_the_name_of_the_oldest():
    problem = rival(NEW, DIGEST, [NEW, OLD])
    assert problem is not None
    assert "old" in problem.message


def test_exactly_one_of_two_simulators_of_equal_age_is_served():
    twins = [resource("a", "2026-01-01", "u1"), resource("b", "2026-01-01", "u2")]
    assert [rival(twin, DIGEST, twins) is None for twin in twins] == [True, False]
