"""Control instructions: what a sample's prompt says in advance of some of its turns.

A simulator that trained on them obeys such an instruction when an episode is opened with one
(`simulation_instruction`, Qwen-AgentWorld section 3.1.2). Each is read off the turn that was
recorded and is true of it; nothing is made up.
"""

from collections.abc import Iterable, Sequence

from agentworld.data.hash_uniform import hash_uniform
from agentworld.domains.base import OUTPUT, Domain
from agentworld.recipes.data import PrepareRecipe
from agentworld.records.sample import SampleTurn

_MOST_TURNS = 3
_MOST_OF_LINE = 160


def control_instruction(
    recipe: PrepareRecipe, domain: Domain, turns: Sequence[SampleTurn], digest: str
) -> str:
    """One line for each of up to three targets, failures first; empty for most trajectories."""
    if hash_uniform(recipe.seed, "control", digest) >= recipe.control_share:
        return ""
    ranks = {
        number: (
            not domain.is_failure(turn.observation),
            hash_uniform(recipe.seed, "controlled turn", digest, number),
        )
        for number, turn in enumerate(turns)
        if turn.target
    }
    numbers = sorted(sorted(ranks, key=ranks.__getitem__)[:_MOST_TURNS])
    return "\n".join(_sentence(domain, turns[number], number + 1) for number in numbers)


def _sentence(domain: Domain, turn: SampleTurn, number: int) -> str:
    lines = [line.strip() for line in turn.observation.splitlines() if line.strip()]
    action = _start(turn.action.split("\n"))
    if OUTPUT not in turn.tags:
        return f"Action {number}, {action}, shows no output."
    if domain.is_failure(turn.observation):
        return f"Action {number}, {action}, fails. Its observation begins with: {_start(lines)}"
    return f"Action {number}, {action}, shows this first: {_start(lines)}"


def _start(lines: Iterable[str]) -> str:
    first = next(iter(lines))
    return first if len(first) <= _MOST_OF_LINE else f"{first[:_MOST_OF_LINE]}..."
