"""Whether a JSON observation has the true values at the paths that it shares with the truth."""

from agentworld.domains.base import Domain
from agentworld.evaluate.metrics.json_paths import is_same, structure_of


def json_values(domain: Domain, predicted: str, truth: str) -> float | None:  # noqa: ARG001  any
    """The share of equal values at the paths that both have. 0 if they share none, or the
    prediction is not JSON; null if the truth has no value.
    """
    true = structure_of(truth)
    if true is None or not true.leaves:
        return None
    guess = structure_of(predicted)
    shared = guess.paths & true.leaves.keys() if guess else frozenset()
    if guess is None or not shared:
        return 0.0
    equal = sum(
        path in guess.leaves and is_same(guess.leaves[path], true.leaves[path]) for path in shared
    )
    return equal / len(shared)


METRIC = json_values
