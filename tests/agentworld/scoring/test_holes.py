import pytest

from agentworld.errors import JudgeError
from agentworld.scoring.holes import HoleLimit

GONE = "the judge is gone"


def counted(*problems):
    limit = HoleLimit("answers")
    for problem in problems:
        limit.add(problem)
    return limit


def test_nineteen_holes_may_be_chance_and_the_twentieth_is_not():
    limit = counted(*[GONE] * 19)
    with pytest.raises(
        JudgeError, match="^20 of the last 20 answers have no verdict.*is gone.*run"
    ):
        limit.add(GONE)


def test_a_judge_that_fails_late_is_noticed_as_soon_as_one_that_fails_at_once():
    limit = counted(*[None] * 1000, *[GONE] * 19)
    with pytest.raises(JudgeError, match="20 of the last 40 answers"):
        limit.add(GONE)


def test_fewer_than_half_of_the_last_are_counted_and_no_more():
    limit = counted(*[GONE, None, None] * 100)
    limit.check()
    assert (limit.num, limit.num_holes) == (300, 100)


@pytest.mark.parametrize(("problems", "ends"), [((GONE, None), True), ((GONE, None, None), False)])
def test_at_the_end_half_of_few_is_half(problems, ends):
    limit = counted(*problems)
    if ends:
        with pytest.raises(
            JudgeError, match="1 of 2 answers have no verdict, the last because the"
        ):
            limit.check()
    else:
        limit.check()


def test_nothing_is_no_half():
    limit = counted()
    limit.check()
    assert limit.num_holes == 0
