"""GRPO by an unmodified TRL over OpenEnv: `python -m peers.grpo RUN_URL TASKS OUT`.

TASKS is a JSON file. Into OUT goes what TRL itself wrote down: `state.json`, and for each step a
table of completions, rewards and advantages.
"""

import json
import sys
from functools import partial
from pathlib import Path

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from peers.policy import fitted_policy
from peers.shell_env import ShellEnv


def config(out: str) -> GRPOConfig:
    return GRPOConfig(
        output_dir=out,
        max_steps=4,
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=640,
        top_p=0.9,  # the policy is tiny: what it hardly means would spoil most of its calls
        learning_rate=3e-4,
        logging_steps=1,
        log_completions=True,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
    )


def main(run_url: str, tasks_file: str, out: str) -> None:
    torch.manual_seed(0)
    tasks = json.loads(Path(tasks_file).read_text())
    model, tokenizer = fitted_policy(tasks[0]["instruction"], ShellEnv(run_url).bash)
    # `reset` gives the words of the task.
    prompt = [{"role": "user", "content": ""}]
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        environment_factory=partial(ShellEnv, run_url),
        train_dataset=Dataset.from_list([{"prompt": prompt, "task": task} for task in tasks]),
        args=config(out),
    )
    trainer.train()
    trainer.state.save_to_json(f"{out}/state.json")


if __name__ == "__main__":
    main(*sys.argv[1:])
