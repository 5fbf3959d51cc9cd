"""What of an observation differs from run to run; a fixed word stands for it in comparisons."""

import re

_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?(?!\w)"
)
_CLOCK = re.compile(
    r"\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} \d\d:\d\d(:\d\d)?\b"
)
_WORD = "<time>"


def mask_times(text: str) -> str:
    """Dates with a time of day, as ISO 8601 has them; a date alone is data and stays."""
    return _TIME.sub(_WORD, text)


def mask_clocks(text: str) -> str:
    """The same as `ls -l` and `date` write them."""
    return _CLOCK.sub(_WORD, text)
