"""The code that both kinds of RL share: TRL's GRPO trainer, configured from a recipe."""

from pathlib import Path

from datasets import Dataset
from torch.utils.data import Sampler
from trl import GRPOConfig, GRPOTrainer

from agentworld.errors import InputError
from agentworld.recipes.train import GroupRlRecipe
from agentworld.train.algorithms import algorithm_of
from agentworld.train.distributed import num_ranks
from agentworld.train.resume import CHECKPOINTS
from agentworld.train.zero import computing, on_one_device


class GroupTrainer(GRPOTrainer):
    """TRL's trainer, which reads the same prompts after a resumption as without it."""

    def _get_train_sampler(self, dataset: Dataset | None = None) -> Sampler[int]:
        self._sampler = super()._get_train_sampler(dataset)
        return self._sampler

    def _init_training_state(
        self, max_steps: int, steps_per_epoch: int, num_epochs: int, *others: object
    ) -> tuple[int, int]:
        """Draws the order of each finished epoch: it comes from the sampler's own generator, which
        no checkpoint stores.
        """
        epoch, step = super()._init_training_state(max_steps, steps_per_epoch, num_epochs, *others)
        for _ in range(epoch):
            next(iter(self._sampler))
        # The Trainer would train another step if the last one does not end an epoch.
        return (num_epochs, 0) if self.state.global_step == max_steps else (epoch, step)


def group_config(
    recipe: GroupRlRecipe,
    out: Path,
    *,
    max_completion_tokens: int,
    zero_stage: int | None = None,
    gradient_checkpointing: bool = False,
) -> GRPOConfig:
    """One optimizer step per batch of groups, on policy."""
    algorithm = algorithm_of(recipe.algorithm)
    config = GRPOConfig(
        output_dir=str(out / CHECKPOINTS),
        max_steps=recipe.num_steps,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=2,
        per_device_train_batch_size=_attempts_of_each(recipe, num_ranks()),
        num_generations=recipe.group_size,
        max_completion_length=max_completion_tokens,
        temperature=recipe.temperature,
        importance_sampling_level=algorithm.importance,
        epsilon=algorithm.clip_low,
        epsilon_high=algorithm.clip_high,
        beta=0.0,
        loss_type=algorithm.loss,
        **computing(zero_stage, in_bfloat16=False),
        save_steps=recipe.checkpoint_every,
        save_total_limit=2,
        logging_steps=1,
        seed=recipe.seed,
        report_to=[],
        disable_tqdm=True,
        gradient_checkpointing=gradient_checkpointing,
        ddp_find_unused_parameters=False,  # all weights are used in each loss
    )
    return on_one_device(config)


def _attempts_of_each(recipe: GroupRlRecipe, processes: int) -> int:
    attempts = recipe.prompts_per_step * recipe.group_size
    if attempts % processes:
        raise InputError(
            f"{processes} processes cannot share the {attempts} attempts of a step alike; choose"
            " prompts_per_step and group_size so that they can, or another number of processes"
        )
    return attempts // processes


def mean_reward(trainer: GRPOTrainer) -> dict[str, float]:
    """The mean reward of the first and of the last tenth of the steps that have one."""
    logged = (entry.get("reward") for entry in trainer.state.log_history)
    rewards = [float(reward) for reward in logged if reward is not None]
    tenth = max(1, len(rewards) // 10)
    if not rewards:
        return {}
    return {
        "first_reward": sum(rewards[:tenth]) / tenth,
        "last_reward": sum(rewards[-tenth:]) / tenth,
    }
