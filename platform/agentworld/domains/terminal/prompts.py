"""The terminal's prompt templates, terse because a small model reads each of them often.

Variants as in Qwen-AgentWorld section 3.1.2: RL and serving use v0, CPT v1, SFT v2 to v11.
"""

from importlib import resources

from agentworld.records.trajectory import PromptParts

DOMAIN = "terminal"
SERVED = 0
_FOR_CPT = 1
_FOR_SFT = range(2, 12)


def prompt_parts(initial_state: str, variant: int = SERVED, instruction: str = "") -> PromptParts:
    """The parts of one episode's system prompt."""
    task, space, demonstration = _variants()[variant]
    return PromptParts(
        task_description=task,
        action_space=space,
        demonstrations=demonstration,
        initial_state=initial_state,
        simulation_instruction=instruction,
    )


def variants_for(pool: str) -> tuple[int, ...]:
    """The variants that a pool draws from."""
    return {"cpt": (_FOR_CPT,), "sft": tuple(_FOR_SFT)}.get(pool, (SERVED,))


def _variants() -> list[list[str]]:
    text = resources.files(__package__).joinpath("prompts.txt").read_text()
    return [line.split(" | ") for line in text.splitlines()]
