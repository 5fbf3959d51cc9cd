"""Two Simulators of one digest would be one engine with two owners: the older one is served."""

from collections.abc import Iterable, Mapping
from typing import Any

from agentworld.records.base import Digest
from agentworld_operator.policy.problem import Problem

RIVAL = "SameAsAnother"
"""The reason of what another one is served in place of."""


def rival(
    simulator: Mapping[str, Any], digest: Digest, others: Iterable[Mapping[str, Any]]
) -> Problem | None:
    """Why another one of this digest is served in its place; null where this one is."""
    older = [other for other in others if _age(other) < _age(simulator)]
    if not older:
        return None
    name = min(older, key=_age)["metadata"]["name"]
    return Problem(RIVAL, f"{name} is the same simulator, {digest}; delete one of them")


def _age(simulator: Mapping[str, Any]) -> tuple[str, str]:
    metadata = simulator["metadata"]
    return metadata["creationTimestamp"], metadata["uid"]
