"""Whether the prediction equals the truth, apart from white space, case and volatile parts.

Runs of white space count as one space and do not count at either end. The domain masks volatile
parts, such as the time of day.
"""

import unicodedata

from agentworld.domains.base import Domain


def normalised(domain: Domain, predicted: str, truth: str) -> float:
    """1 or 0."""
    return float(_form(domain, predicted) == _form(domain, truth))


def _form(domain: Domain, observation: str) -> str:
    text = domain.mask_volatile(domain.normalise(observation))
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


METRIC = normalised
