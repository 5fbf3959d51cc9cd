import pytest

from agentworld.errors import JudgeError
from agentworld.scoring.holes import HoleLimit

HOLE = "the judge is gone"


def build_limit(*problems):
    limit = HoleLimit("answers")
    for problem in problems:
        limit.add(problem)
    return limit


def test_twenty_missing_verdicts_in_a_row_raise_an_error():
    limit = build_limit(*[HOLE] * 19)
    with pytest.raises(
        JudgeError, match="^20 of the last 20 answers have no verdict.*is gone.*run"
    ):
        limit.add(HOLE)


def test_twenty_missing_verdicts_among_the_last_forty_answers_raise_an_error():
    limit = build_limit(*[None] * 1000, *[HOLE] * 19)
    with pytest.raises(JudgeError, match="20 of the last 40 answers"):
        limit.add(HOLE)


def test_fewer_than_half_missing_verdicts_are_counted_without_an_error():
    limit = build_limit(*[HOLE, None, None] * 100)
    limit.check()
    assert (limit.num, limit.num_holes) == (300, 100)


@pytest.mark.parametrize(("problems", "fails"), [((HOLE, None), True), ((HOLE, None, None), False)])
def test_the_final_check_fails_if_half_of_a_few_verdicts_are_missing(problems, fails):
    limit = build_limit(*problems)
    if fails:
        with pytest.raises(
            JudgeError, match="1 of 2 answers have no verdict, the last because the"
        ):
            limit.check()
    else:
        limit.check()


def test_the_final_check_passes_without_answers():
    limit = build_limit()
    limit.check()
    assert limit.num_holes == 0
