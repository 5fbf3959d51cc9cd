from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentworld.domains.shell.tasks import solved_task
from agentworld.errors import SimulatorError
from agentworld.rendering.messages import agent_messages
from agentworld.train.parent import Parent
from make import records
from make.worlds import ScriptedWorld

if TYPE_CHECKING:
    import torch

    from agentworld.train.model import LanguageModel
    from agentworld.train.rollout import Rollout

pytestmark = pytest.mark.compute
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
END, OBSERVATION = "<|end|>", "<|user|>kolmir\n[0] ~<|assistant|>"


def play(language_model: LanguageModel, world: ScriptedWorld, num_tasks: int) -> list[Rollout]:
    from agentworld.train.rollout import Policy, rollout_all

    tasks = [solved_task(seed, held_out=False).task for seed in range(num_tasks)]
    policy = Policy(*language_model[:2], temperature=1.0, max_tokens=8)
    return asyncio.run(rollout_all(policy, world, tasks))


def text_of(language_model: LanguageModel, attempt: Rollout, *, is_target: bool) -> str:
    """The text of the target tokens, or of the other tokens."""
    tokens = zip(attempt.completion_ids, attempt.is_target, strict=True)
    return str(language_model.tokenizer.decode([id_ for id_, flag in tokens if flag == is_target]))


def text_after(action: str) -> str:
    """The observation after an action, and the action's end if the action was cut off."""
    return OBSERVATION if action.endswith(END) else END + OBSERVATION


def test_an_episode_is_one_row_whose_only_targets_are_its_actions(
    language_model: LanguageModel,
) -> None:
    world = ScriptedWorld()
    (attempt,) = play(language_model, world, 1)
    assert attempt.reward == 1.0
    assert len(attempt.turns) == 3
    first, second, _ = (action.text for action in world.sampled if action)
    texts = text_after(first) + text_after(second)
    assert text_of(language_model, attempt, is_target=False) == texts


class MetaModel:
    """Represents a model on an accelerator: torch's `meta` device has no numbers, so it ends each
    response at once, and records the devices of its inputs.
    """

    def __init__(self, end: int) -> None:
        import torch
        from transformers import GenerationConfig

        self.device = torch.device("meta")
        self.generation_config = GenerationConfig(eos_token_id=end)
        self.given: dict[str, str] = {}
        self._end = end

    def generate(self, **inputs: object) -> torch.Tensor:
        import torch

        tensors = {
            name: tensor for name, tensor in inputs.items() if isinstance(tensor, torch.Tensor)
        }
        self.given = {name: tensor.device.type for name, tensor in tensors.items()}
        rows, width = tensors["input_ids"].shape
        return torch.full((rows, width + 1), self._end)


class ScriptedModel:
    """Writes given actions, those of all episodes at each step, with padding as `generate` does."""

    def __init__(self, language_model: LanguageModel, steps: list[list[str]]) -> None:
        self.device = language_model.model.device
        self.generation_config = language_model.model.generation_config
        self._tokenizer = language_model.tokenizer
        self._steps = iter(steps)

    def generate(self, *, input_ids: torch.Tensor, **_: object) -> torch.Tensor:
        import torch

        texts = next(self._steps)
        actions = self._tokenizer(texts, padding=True, padding_side="right", return_tensors="pt")
        return torch.cat([input_ids, actions["input_ids"]], dim=1)


@pytest.mark.parametrize("pad", ["<|endoftext|>", "<|im_start|>"])
def test_an_episode_has_the_tokens_of_the_rendered_conversation_and_no_padding_as_target(
    tmp_path: Path, pad: str
) -> None:
    from agentworld.train.model import load_model
    from agentworld.train.rollout import Policy, rollout_all
    from make.model import tiny_qwen3

    language_model = load_model(Parent(tiny_qwen3(tmp_path), chat_template=CHATML))
    tokenizer = language_model.tokenizer
    tokenizer.pad_token = pad
    end, cut = "<|im_end|>", "cat rimo.txt kolu"
    steps = [[f"ls{end}", f"cat rimo{end}"], [f"pwd{end}", cut], [f"ls{end}", f"cd{end}"]]
    policy = Policy(ScriptedModel(language_model, steps), tokenizer, temperature=1.0, max_tokens=8)
    world, tasks = ScriptedWorld(), [solved_task(seed, held_out=False).task for seed in range(2)]
    for place, attempt in enumerate(asyncio.run(rollout_all(policy, world, tasks))):
        actions = "".join(step[place] for step in steps)
        assert text_of(language_model, attempt, is_target=True) == actions
        messages = agent_messages(attempt.task.instruction, attempt.turns)[:-1]
        text = tokenizer.apply_chat_template(messages, tokenize=False)
        assert tokenizer.decode(attempt.token_ids) == text.removesuffix("\n")
    assert {action.text for action in world.sampled if action} == {*steps[0], *steps[1], *steps[2]}


def test_the_sampling_defaults_of_a_base_do_not_change_an_action(
    language_model: LanguageModel,
) -> None:
    import torch

    torch.manual_seed(0)
    (expected,) = play(language_model, ScriptedWorld(), 1)
    language_model.model.generation_config.update(top_p=0.01, min_p=0.9, repetition_penalty=9.0)
    torch.manual_seed(0)
    (attempt,) = play(language_model, ScriptedWorld(), 1)
    assert attempt.completion_ids == expected.completion_ids


def test_an_agent_acts_on_the_device_of_its_model(language_model: LanguageModel) -> None:
    from agentworld.train.rollout import Policy, rollout_all

    model = MetaModel(language_model.tokenizer.eos_token_id)
    tasks = [solved_task(seed, held_out=False).task for seed in range(3)]
    policy = Policy(model, language_model.tokenizer, temperature=1.0, max_tokens=8)
    asyncio.run(rollout_all(policy, ScriptedWorld(), tasks))
    assert model.given == {"input_ids": "meta", "attention_mask": "meta"}


def test_the_world_receives_the_full_text_weights_and_step_of_the_policy(
    language_model: LanguageModel,
) -> None:
    from agentworld.train.rollout import Policy, rollout_all

    world, weights = ScriptedWorld(), records.digest("weights")
    task = solved_task(0, held_out=False).task
    policy = Policy(*language_model[:2], temperature=1.0, max_tokens=8, weights=weights, step=7)
    (attempt,) = asyncio.run(rollout_all(policy, world, [task]))
    actions = [action for action in world.sampled if action]
    assert len(actions) == 3
    assert {(action.policy, action.policy_step) for action in actions} == {(weights, 7)}
    text = text_of(language_model, attempt, is_target=True)
    assert "".join(action.text for action in actions) == text


def test_only_an_action_with_an_uncertain_observation_is_masked_from_the_loss(
    language_model: LanguageModel,
) -> None:
    world = ScriptedWorld(unsure=lambda _task, step: step == 2)
    (attempt,) = play(language_model, world, 1)
    first, second, third = (action.text for action in world.sampled if action)
    assert text_of(language_model, attempt, is_target=True) == first + third
    texts = text_after(first) + second + text_after(second)
    assert text_of(language_model, attempt, is_target=False) == texts
    assert (attempt.reward, attempt.num_masked) == (1.0, 1)


def test_an_episode_failed_by_the_simulator_is_a_hole(language_model: LanguageModel) -> None:
    failing_task = solved_task(1, held_out=False).task.id
    attempts = play(language_model, ScriptedWorld(frozenset({failing_task})), 4)
    assert [attempt.reward for attempt in attempts] == [1.0, None, 1.0, 1.0]


def test_an_episode_with_an_uncertain_last_observation_is_a_hole(
    language_model: LanguageModel,
) -> None:
    unsure_task = solved_task(1, held_out=False).task.id
    world = ScriptedWorld(unsure=lambda task, step: (task, step) == (unsure_task, 3))
    attempts = play(language_model, world, 4)
    assert [attempt.reward for attempt in attempts] == [1.0, None, 1.0, 1.0]


def test_an_episode_that_never_began_is_a_hole_with_a_row_without_targets(
    language_model: LanguageModel,
) -> None:
    shut_task = solved_task(1, held_out=False).task.id
    hole = play(language_model, ScriptedWorld(shut=frozenset({shut_task})), 4)[1]
    assert hole.reward is None
    assert (len(hole.completion_ids), sum(hole.is_target)) == (1, 0)


def test_too_many_failed_episodes_stop_the_training(language_model: LanguageModel) -> None:
    failing_tasks = frozenset(solved_task(seed, held_out=False).task.id for seed in range(2))
    with pytest.raises(SimulatorError, match="2 of 4 episodes"):
        play(language_model, ScriptedWorld(failing_tasks), 4)
