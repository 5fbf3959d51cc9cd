"""Replaces parts of an observation that differ in every run by a fixed word, for comparisons."""

import re

_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?(?!\w)"
)
_CLOCK = re.compile(
    r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} \d\d:\d\d(:\d\d)?\b"
)
_WORD = "<time>"


def mask_times(text: str) -> str:
    """Masks dates with a time of day in the form of ISO 8601; a date alone is data and stays."""
    return _TIME.sub(_WORD, text)


def mask_clocks(text: str) -> str:
    """Masks dates with a time of day in the form of `ls -l` and `date`."""
    return _CLOCK.sub(_WORD, text)
