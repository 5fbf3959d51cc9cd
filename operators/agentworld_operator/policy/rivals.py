"""Two Simulators of one digest would own one engine; only the older one is served."""

from collections.abc import Iterable, Mapping
from typing import Any

from agentworld.records.base import Digest
from agentworld_operator.policy.problem import Problem

RIVAL = "SameAsAnother"
"""The reason of a condition for the one that is not served."""


def rival(
    simulator: Mapping[str, Any], digest: Digest, others: Iterable[Mapping[str, Any]]
) -> Problem | None:
    """Why another object of this digest is served instead; null if this one is."""
    older = [other for other in others if _age(other) < _age(simulator)]
    if not older:
        return None
    name = min(older, key=_age)["metadata"]["name"]
    return Problem(RIVAL, f"{name} is the same simulator, {digest}; delete one of them")


def _age(simulator: Mapping[str, Any]) -> tuple[str, str]:
    metadata = simulator["metadata"]
    return metadata["creationTimestamp"], metadata["uid"]
