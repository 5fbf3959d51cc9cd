"""The shell's prompt templates, terse because a small model reads each of them often.

Variants as in Qwen-AgentWorld section 3.1.2: RL and serving use v0, CPT v1, SFT v2 to v11.
"""

from functools import cache
from importlib import resources

from agentworld.domains.base import SERVED, Start
from agentworld.records.trajectory import PromptParts


def prompt_parts(start: Start, variant: int = SERVED) -> PromptParts:
    """The parts of one episode's system prompt."""
    task, space, demonstration = _variants()[variant]
    return PromptParts(
        task_description=task,
        action_space=space,
        demonstrations=demonstration,
        initial_state=start.text,
    )


@cache
def _variants() -> tuple[tuple[str, ...], ...]:
    text = resources.files(__package__).joinpath("prompts.txt").read_text()
    return tuple(tuple(line.split(" | ")) for line in text.splitlines())
