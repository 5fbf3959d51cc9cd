"""RL of a world model on one turn per trajectory (Qwen-AgentWorld section 3.4).

Several samples of one trajectory share a prefix and collapse the variance of rewards; the RL
pool therefore holds exactly one target per trajectory.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from datasets import Dataset
from trl import GRPOTrainer

from agentworld.domains.base import domain_of
from agentworld.errors import InputError
from agentworld.recipes.train import WorldRlRecipe
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.message import Message
from agentworld.records.metrics import OnMetrics, ignore_metrics
from agentworld.records.progress import OnProgress
from agentworld.records.sample import Sample
from agentworld.rendering.messages import world_messages
from agentworld.scoring.answers import AnswerStore
from agentworld.scoring.reward import Prediction, Rewarder
from agentworld.storage.pools import read_dataset, read_pool
from agentworld.train.distributed import process_group
from agentworld.train.group_rl import GroupTrainer, group_config, mean_reward
from agentworld.train.model import load_model
from agentworld.train.parent import Parent
from agentworld.train.preemption import train_to_end
from agentworld.train.reward_figures import reward_figures, reward_totals
from agentworld.train.rl_metrics import RlMetrics
from agentworld.train.save import save_checkpoint
from agentworld.train.trainer import TrainerProgress
from agentworld.train.zero import check_zero
from agentworld.train.zero_trainer import ZeroTrainer


class _WorldRlTrainer(ZeroTrainer, GroupTrainer):
    """TRL's trainer, with our checkpoints."""


@process_group()
def run(
    recipe: WorldRlRecipe,
    data: Path,
    parent: Parent,
    out: Path,
    on_progress: OnProgress,
    on_metrics: OnMetrics = ignore_metrics,
    *,
    answers: AnswerStore | None = None,
) -> Checkpoint:
    """Trains from `parent`; writes `out/model`.

    A missing verdict leaves a hole in its group. Questions whose answers are in `answers` are not
    sent to the judge. Raises JudgeError if half of the verdicts are missing, and InputError if no
    answer got a reward.
    """
    check_zero(recipe.zero_stage, out)
    dataset = read_dataset(data)
    language_model = load_model(parent, recipe.zero_stage)
    num_samples = recipe.num_steps * recipe.prompts_per_step
    samples = list(islice(read_pool(data, dataset, "rl"), num_samples))
    if len(samples) < recipe.prompts_per_step:
        raise InputError(
            f"the data set has {len(samples)} samples for RL and a step takes"
            f" {recipe.prompts_per_step}; lower rl.prompts_per_step, or give RL more of the data"
            " (prepare.cpt_share and sft_share leave the rest)"
        )
    trainer = _WorldRlTrainer(
        model=language_model.model,
        processing_class=language_model.tokenizer,
        reward_funcs=_reward_function(Rewarder(recipe.reward, answers=answers)),
        args=group_config(
            recipe,
            out,
            max_completion_tokens=recipe.max_tokens,
            zero_stage=recipe.zero_stage,
            gradient_checkpointing=recipe.gradient_checkpointing,
        ),
        train_dataset=Dataset.from_list([_question(sample) for sample in samples]),
        callbacks=[TrainerProgress(on_progress), RlMetrics(on_metrics)],
    )
    trainer.zero_stage = recipe.zero_stage
    train_to_end(trainer)
    return save_checkpoint(
        language_model,
        out,
        stage="rl",
        recipe=recipe,
        parent=parent,
        dataset=dataset,
        reward_model=recipe.reward.folder,
        metrics=_metrics(trainer, out),
    )


def _metrics(trainer: GRPOTrainer, out: Path) -> dict[str, float]:
    rewards = mean_reward(trainer)
    if not rewards:
        raise InputError(
            "no answer got a reward, so that nothing was learned; correct rl.reward in the recipe,"
            f" or its judge, then remove {out} and run this again"
        )
    return {**rewards, **reward_totals(trainer.state.log_history)}


def _question(sample: Sample) -> dict[str, object]:
    (target,) = sample.targets
    turn = sample.turns[target]
    return {
        "prompt": world_messages(sample.prompt, sample.turns[:target], turn.action),
        "truth": turn.observation,
        "domain": sample.domain,
    }


def _reward_function(rewarder: Rewarder) -> Callable[..., list[float | None]]:
    def reward(
        prompts: Sequence[Sequence[Message]],
        completions: Sequence[Sequence[Message]],
        truth: Sequence[str],
        domain: Sequence[str],
        log_metric: Callable[[str, float], None],
        **_: object,
    ) -> list[float | None]:
        texts = (completion[0]["content"] for completion in completions)
        rows = zip(map(domain_of, domain), texts, truth, prompts, strict=True)
        rewards = rewarder.score_all([Prediction(*row) for row in rows])
        for name, value in reward_figures(rewards, rewarder.take_usage()).items():
            log_metric(name, value)
        return rewards

    return reward
