"""Makes the thoughts before observations from the recorded state."""

from collections.abc import Sequence

from agentworld.domains.base import domain_of
from agentworld.errors import InputError
from agentworld.records.sample import Sample


def recorded_thoughts(sample: Sample) -> Sequence[str]:
    """For each target turn, its domain's thought from the state before it.

    Raises InputError if no state was recorded.
    """
    thoughts = [""] * len(sample.turns)
    domain = domain_of(sample.domain)
    for target in sample.targets:
        state = sample.turns[target - 1].state if target else sample.prompt.initial_state
        if state is None:
            raise InputError(
                f"the trajectory {sample.trajectory} has no recorded state before its turn"
                f" {target + 1}; collect with `record_state: true`, or set `reasoning: off`"
            )
        thoughts[target] = domain.thought(state, sample.turns[target].action)
    return thoughts
