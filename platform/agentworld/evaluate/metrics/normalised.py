"""Is the prediction the truth, but for its form: white space, case and what nobody can know.

Runs of white space count as one blank, none counts at either end, and the case of letters does
not count. What is volatile, as the time of day, the domain says.
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
