"""Whether an observation of an unknown environment reports a failure, by the words all use."""

import re

_FAILURE = re.compile(
    r"""\A[\s<\[(*!-]{0,4}
    (?:fatal|error|exception|traceback|failed\ to|invalid|permission\ denied)\b
    |:\ (?:command\ not\ found|no\ such\ file\ or\ directory|permission\ denied)\s*(?:\n|\Z)
    |"(?:error|is_?error)"\s*:(?!\s*(?:null|false|""|\{\}|\[\]))
    |"(?:success|ok)"\s*:\s*false
    |\bexit(?:ed)?\ (?:with\ )?(?:code|status)\W{0,3}[1-9]""",
    re.IGNORECASE | re.VERBOSE,
)


def reports_failure(observation: str) -> bool:
    """Careful rather than complete: only what is plain in any environment counts."""
    return _FAILURE.search(observation) is not None
