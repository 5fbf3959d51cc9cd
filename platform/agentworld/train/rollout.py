"""Plays many episodes at once: the policy acts in batches, and the simulator answers each episode.

An episode becomes one token row. The loss counts the policy's tokens and not the observations'. If
the simulator fails, the episode is a hole: it has no reward, and never the reward 0.

The loss also leaves out an action whose observation has low confidence, because its effect is
unknown; it counts the other actions. A reward with such an observation is discarded, so the whole
episode is a hole.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from agentworld.client.base import World
from agentworld.errors import SimulatorError
from agentworld.records.base import Digest
from agentworld.records.message import Message
from agentworld.records.task import Task
from agentworld.records.trajectory import Turn
from agentworld.records.trajectory_log import Sampled
from agentworld.rendering.messages import agent_messages
from agentworld.train.answer_spans import end_of_answer


@dataclass
class Rollout:
    """One episode in the trainer's form."""

    task: Task
    episode: str = ""
    turns: list[Turn] = field(default_factory=list)
    prompt_ids: list[int] = field(default_factory=list)
    completion_ids: list[int] = field(default_factory=list)
    is_target: list[int] = field(default_factory=list)
    """1 for each completion token that the loss counts."""
    num_masked: int = 0
    """The number of steps with observations of low confidence."""
    reward: float | None = None
    done: bool = False

    @property
    def token_ids(self) -> list[int]:
        """The tokens of the episode so far."""
        return self.prompt_ids + self.completion_ids

    def add(self, token_ids: Sequence[int], *, is_target: bool) -> None:
        """Appends tokens of the policy or of the world."""
        self.completion_ids += token_ids
        self.is_target += [int(is_target)] * len(token_ids)

    def mask_last(self, num_tokens: int) -> None:
        """Removes the last `num_tokens` tokens, an action, from the loss."""
        self.num_masked += 1
        self.is_target[len(self.is_target) - num_tokens :] = [0] * num_tokens


class PolicyAction(NamedTuple):
    """The next action of a policy."""

    action: str
    sampled: Sampled
    """The text that the policy wrote, with its end token, and the weights that wrote it."""
    num_tokens: int
    """The number of tokens that the policy wrote."""


@dataclass(frozen=True)
class Policy:
    """A model that writes the next action for a batch of rollouts."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    temperature: float
    max_tokens: int
    weights: Digest | None = None
    """The digest of the weights that it started from."""
    step: int | None = None
    """The number of optimizer steps since then."""

    def begin(self, attempt: Rollout) -> None:
        """Starts an episode with its prompt, the task's instruction."""
        text = self._text(agent_messages(attempt.task.instruction, ()), prompted=True)
        attempt.prompt_ids = self.tokenizer.encode(text, add_special_tokens=False)

    def act(self, attempts: Sequence[Rollout]) -> list[PolicyAction]:
        """Samples an action for each episode and appends its tokens, including the end token."""
        batch = self.tokenizer.pad(
            {"input_ids": [attempt.token_ids for attempt in attempts]},
            padding_side="left",
            return_tensors="pt",
        ).to(self.model.device)  # the tokenizer's tensors are on the CPU
        with torch.no_grad():
            completions = self.model.generate(
                **batch,
                do_sample=True,
                temperature=self.temperature,
                # the base's defaults would shape a distribution that the trainer does not know
                top_k=0,
                top_p=1.0,
                min_p=None,
                repetition_penalty=1.0,
                max_new_tokens=self.max_tokens,
            )[:, batch["input_ids"].shape[1] :]
        return [
            self._take(attempt, row) for attempt, row in zip(attempts, completions, strict=True)
        ]

    def append_observation(self, attempt: Rollout) -> None:
        """Appends the last observation as the chat template renders it, after the end of the action
        if the action was cut off before it.

        Only the new text is tokenized, so that the policy's tokens stay those that it sampled.
        """
        messages = agent_messages(attempt.task.instruction, attempt.turns)
        old = self._text(messages[:-1])
        old = old[: old.rindex(self._end)]
        if self.tokenizer.decode(attempt.completion_ids).endswith(self._end):
            old += self._end
        new = self._text(messages, prompted=True).removeprefix(old)
        attempt.add(self.tokenizer.encode(new, add_special_tokens=False), is_target=False)

    def _take(self, attempt: Rollout, row: torch.Tensor) -> PolicyAction:
        ids = row.tolist()
        num_before_end = len(list(takewhile(lambda token: token not in self._end_ids, ids)))
        ids = ids[: num_before_end + 1]  # without the padding of an action that others outlast
        attempt.add(ids, is_target=True)
        action = str(self.tokenizer.decode(ids, skip_special_tokens=True))
        sampled = Sampled(str(self.tokenizer.decode(ids)), self.weights, self.step)
        return PolicyAction(action, sampled, len(ids))

    @cached_property
    def _end(self) -> str:
        return end_of_answer(self.tokenizer)

    @cached_property
    def _end_ids(self) -> set[int | None]:
        ends = self.model.generation_config.eos_token_id
        return {self.tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])}

    def _text(self, messages: list[Message], *, prompted: bool = False) -> str:
        text = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=prompted
        )
        return str(text)


async def rollout_all(policy: Policy, world: World, tasks: Sequence[Task]) -> list[Rollout]:
    """Plays every task to its end; raises SimulatorError if half of the episodes are holes."""
    attempts = [Rollout(task) for task in tasks]
    await asyncio.gather(*(_begin(policy, world, attempt) for attempt in attempts))
    while open_attempts := [attempt for attempt in attempts if not attempt.done]:
        pairs = zip(open_attempts, policy.act(open_attempts), strict=True)
        await asyncio.gather(*(_step(policy, world, attempt, act) for attempt, act in pairs))
    num_holes = sum(attempt.reward is None for attempt in attempts)
    if num_holes * 2 >= len(attempts):
        raise SimulatorError(
            f"{num_holes} of {len(attempts)} episodes have no reward, for the simulator gave no"
            " answer or is not sure of its last one; the training stops here and continues from its"
            " last checkpoint"
        )
    return attempts


async def _begin(policy: Policy, world: World, attempt: Rollout) -> None:
    policy.begin(attempt)
    try:
        attempt.episode = await world.reset(attempt.task)
    except SimulatorError:
        attempt.done = True
        # A trainer accepts no row without a token; this token is not a target.
        attempt.add([policy.tokenizer.eos_token_id], is_target=False)


async def _step(policy: Policy, world: World, attempt: Rollout, act: PolicyAction) -> None:
    try:
        result = await world.step(attempt.episode, act.action, act.sampled)
    except SimulatorError:
        attempt.done = True
        return
    attempt.turns.append(Turn(action=act.action, observation=result.observation))
    attempt.reward, attempt.done = result.reward, result.done
    if result.low_confidence:
        attempt.mask_last(act.num_tokens)
        attempt.reward = None
    if not attempt.done:
        policy.append_observation(attempt)
