"""Filters for turns that teach a model nothing. The domains' method `keep` uses them."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from agentworld.records.trajectory import Turn


def without_retries(turns: Iterable[Turn], is_failure: Callable[[str], bool]) -> list[bool]:
    """False for a failing turn that equals an earlier turn of the same run of failures.

    Turns are equal if action, observation and state are. So nothing changed between them, and the
    history of the later turns stays true (Qwen-AgentWorld section 3.1.2).
    """
    keys = [(turn.action, turn.observation, turn.state) for turn in turns]
    if len(set(keys)) == len(keys):
        return [True] * len(keys)  # the common case: no observation has to be examined
    results, failures = [], set[tuple[str, str, str | None]]()
    for key in keys:
        results.append(key not in failures)
        if is_failure(key[1]):
            failures.add(key)
        else:
            failures.clear()
    return results


def without_unchanged(turns: Sequence[Turn], screen: Callable[[str], str]) -> list[bool]:
    """False for a turn that did not change the screen: it would teach a model to copy.

    `screen` maps an observation to a text that is equal for equal screens (section 3.1.2).
    """
    screens = [screen(turn.observation) for turn in turns]
    changes = [after != before for before, after in pairwise(screens)]
    return [True, *changes] if screens else []
