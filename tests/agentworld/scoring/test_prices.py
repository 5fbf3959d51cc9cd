from decimal import Decimal

import pytest

from agentworld.scoring.answers import Answer
from agentworld.scoring.prices import price_of

OPENAI = "https://api.openai.com"


def answer(model="gpt-4o", **counts):
    all_counts = {"num_prompt_tokens": 1_000, "num_cached_tokens": 0, "num_tokens": 100, **counts}
    at = "2026-11-20T12:00:00.000+00:00"
    return Answer(text="besa", thought="", is_whole=True, model=model, at=at, **all_counts)


def test_a_known_model_is_priced_by_its_providers_table():
    assert price_of(OPENAI, [answer()]) == Decimal("0.0035")  # 2.50 and 10 dollars a million
    assert price_of(OPENAI, [answer()] * 3) == Decimal("0.0105")


def test_cached_tokens_cost_less():
    assert price_of(OPENAI, [answer(num_cached_tokens=1_000)]) == Decimal("0.00225")


def test_the_price_of_no_answers_is_zero():
    assert price_of("http://127.0.0.1:8000", []) == 0


@pytest.mark.parametrize(
    ("url", "unpriced"),
    [
        ("http://127.0.0.1:8000", answer()),
        (OPENAI, answer("a-model-of-nobody")),
        (OPENAI, answer("")),
        (OPENAI, answer(num_tokens=None)),
        (OPENAI, answer(num_prompt_tokens=None)),
    ],
    ids=["no provider", "no such model", "no name", "no output", "no prompt"],
)
def test_one_answer_of_unknown_price_makes_the_sum_unknown(url, unpriced):
    assert price_of(url, [unpriced]) is None
    assert price_of(url, [answer(), unpriced]) is None
