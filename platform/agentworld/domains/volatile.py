"""Replaces parts of an observation that differ in every run by a fixed word, for comparisons."""

import re

_TIME = re.compile(
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?(?!\w)"
)
_CLOCK = re.compile(
    r"\b((Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?"
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +\d{1,2} \d\d:\d\d"
    r"(:\d\d( [A-Z]{3,4} \d{4})?)?\b"
)
_TEMPORARY = re.compile(r"\btmp\.[A-Za-z0-9]{10}\b")
_JOB = re.compile(r"^(\[\d+\][+-]? +)\d+$", re.MULTILINE)
_WORD = "<time>"


def mask_times(text: str) -> str:
    """Masks dates with a time of day in the form of ISO 8601; a date alone is data and stays."""
    return _TIME.sub(_WORD, text) if "-" in text else text  # the search takes long


def mask_clocks(text: str) -> str:
    """Masks dates with a time of day in the form of `ls -l` and `date`."""
    return _CLOCK.sub(_WORD, text)


def mask_temporary_names(text: str) -> str:
    """Masks the names of temporary files that `mktemp` generates; agents choose other names."""
    return _TEMPORARY.sub("<name>", text)


def mask_job_processes(text: str) -> str:
    """Masks the process id of a started job: `[1] 17`."""
    return _JOB.sub(r"\1<id>", text)
