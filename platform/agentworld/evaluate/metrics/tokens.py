"""Tokens for comparing texts: words, numbers, and every other character by itself."""

import re

_TOKEN = re.compile(r"\w+|[^\w\s]")


def tokens_of(text: str) -> list[str]:
    """The tokens in order; case counts, white space does not."""
    return _TOKEN.findall(text)


def f1(common: int, num_predicted: int, num_true: int) -> float:
    """2 * common / (num_predicted + num_true); 1 if both are empty."""
    num = num_predicted + num_true
    return 2 * common / num if num else 1.0
