"""Whether a JSON observation has the true keys and list lengths: F1 over its paths."""

from agentworld.domains.base import Domain
from agentworld.evaluate.metrics.json_paths import structure_of
from agentworld.evaluate.metrics.tokens import f1


def json_keys(domain: Domain, predicted: str, truth: str) -> float | None:  # noqa: ARG001  any
    """0 to 1; null if the truth is neither an object nor a list."""
    true = structure_of(truth)
    if true is None:
        return None
    guess = structure_of(predicted)
    if guess is None or guess.is_list != true.is_list:
        return 0.0
    return f1(len(guess.paths & true.paths), len(guess.paths), len(true.paths))


METRIC = json_keys
