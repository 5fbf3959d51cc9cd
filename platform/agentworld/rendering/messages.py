"""Renders turns as chat messages, for the world model and for the agent.

The world answers an action (user) with an observation (assistant): Qwen-AgentWorld section 3.2. For
the agent the roles are swapped.
"""

from collections.abc import Iterable

from agentworld.records.message import Message
from agentworld.records.trajectory import Exchange, PromptParts

RENDERER = "chat-v1"
"""The version of the renderer, pinned in every simulator manifest; it changes whenever a byte of
the renderer's output does."""


def system_text(prompt: PromptParts) -> str:
    """The non-empty parts of a system prompt, in the paper's order (section 2.2)."""
    parts = (
        prompt.task_description,
        prompt.action_space,
        prompt.demonstrations,
        prompt.initial_state,
        prompt.simulation_instruction,
    )
    return "\n".join(part for part in parts if part)


def world_messages(prompt: PromptParts, turns: Iterable[Exchange], action: str) -> list[Message]:
    """The messages from which a world model predicts the observation of `action`.

    Thoughts of earlier turns are left out, in training as in serving.
    """
    messages: list[Message] = [{"role": "system", "content": system_text(prompt)}]
    for turn in turns:
        messages += exchange(turn.action, turn.observation)
    return [*messages, {"role": "user", "content": action}]


def agent_messages(instruction: str, turns: Iterable[Exchange]) -> list[Message]:
    """The messages from which an agent chooses the next action."""
    messages: list[Message] = [{"role": "user", "content": instruction}]
    for turn in turns:
        messages.append({"role": "assistant", "content": turn.action})
        messages.append({"role": "user", "content": turn.observation})
    return messages


def exchange(user: str, assistant: str) -> list[Message]:
    """A question and its answer."""
    return [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]


def with_thought(thought: str, answer: str) -> str:
    """An assistant's text: its thought, if there is one, and its answer."""
    return f"<think>{thought}</think>{answer}" if thought else answer
