"""Control instructions: sentences in a sample's prompt that describe some of its turns in advance.

A simulator that trained on such samples obeys an instruction that an episode is opened with
(`simulation_instruction`, Qwen-AgentWorld section 3.1.2). Each sentence is a true statement about
the recorded turn.
"""

from collections.abc import Sequence

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
    action, line = _line(turn.action), _line(turn.observation)
    if OUTPUT not in turn.tags:
        return f"Action {number}, {action}, shows no output."
    if domain.is_failure(turn.observation):
        return f"Action {number}, {action}, fails. Its observation has the line: {line}"
    return f"Action {number}, {action}, shows the line: {line}"


def _line(text: str) -> str:
    """The first line with a letter or digit."""
    lines = [line.strip() for line in text.splitlines()]
    line = next((line for line in lines if any(map(str.isalnum, line))), text.strip())
    return line if len(line) <= _MOST_OF_LINE else f"{line[:_MOST_OF_LINE]}..."
