"""Recognises an observation that reports a failure, by words that most programs use."""

import re

_FAILURE = re.compile(
    r"""\A[\s<\[(*!-]{0,4}
    (?:fatal|error|exception|traceback|failed\ to|invalid|permission\ denied)\b
    |:\ (?:command\ not\ found|no\ such\ file\ or\ directory|permission\ denied)\s*(?:\n|\Z)
    |"(?=[eios])(?:
        (?:error|is_?error)"\s*:(?!\s*(?:null|false|""|\{\}|\[\]))
        |(?:success|ok)"\s*:\s*false
    )""",
    re.VERBOSE,
)
_EXIT = re.compile(r"\bexit(?:ed)? (?:with )?(?:code|status)\W{0,3}[1-9]")


def reports_failure(observation: str) -> bool:
    """Whether an observation reports a failure. It misses unusual words rather than guess."""
    text = observation.lower()  # five times as fast as patterns that ignore case
    return _FAILURE.search(text) is not None or ("exit" in text and _EXIT.search(text) is not None)
