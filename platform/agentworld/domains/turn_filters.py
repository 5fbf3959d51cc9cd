"""Which turns of an episode teach nothing: what the domains' `keep` is made of."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from agentworld.records.trajectory import Turn


def without_retries(turns: Iterable[Turn], is_failure: Callable[[str], bool]) -> list[bool]:
    """False for a failing turn that an earlier one of the same run of failures equals.

    Nothing changed since, or the states differ, so that the later turns keep a true history
    (Qwen-AgentWorld section 3.1.2).
    """
    keys = [(turn.action, turn.observation, turn.state) for turn in turns]
    if len(set(keys)) == len(keys):
        return [True] * len(keys)  # most episodes, whose observations need no look
    results, failures = [], set[tuple[str, str, str | None]]()
    for key in keys:
        results.append(key not in failures)
        if is_failure(key[1]):
            failures.add(key)
        else:
            failures.clear()
    return results


def without_unchanged(turns: Sequence[Turn], screen: Callable[[str], str]) -> list[bool]:
    """False for a turn whose screen is the one before it: from such a turn a model learns to copy.

    `screen` is what two observations of one screen have in common (section 3.1.2).
    """
    screens = [screen(turn.observation) for turn in turns]
    changes = [after != before for before, after in pairwise(screens)]
    return [True, *changes] if screens else []
