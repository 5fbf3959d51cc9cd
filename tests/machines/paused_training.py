"""A training of a few steps in a process that a test can pause, signal and end."""

import signal
import time
from pathlib import Path

import torch
import torch.distributed as dist

from agentworld.errors import Preempted
from agentworld.recipes.train import NextTokenRecipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.progress import OnProgress, ignore_progress
from agentworld.train.distributed import process_group, rank
from agentworld.train.encode import encode, whole_episode
from agentworld.train.model import load_model
from agentworld.train.parent import Parent
from agentworld.train.trainer import train_rows
from make import training
from make.training import TINY

RECIPE = NextTokenRecipe(**TINY, stage="cpt", tokens_per_batch=256, epochs=2, checkpoint_every=4)
"""About six steps."""


def train(parent: Path, out: Path, tick: OnProgress = ignore_progress) -> str:
    """Prints the resulting weights."""
    model = load_model(Parent(parent))
    rows = list(encode(model.tokenizer, map(whole_episode, training.samples())))
    train_rows(model, RECIPE, rows, out, tick)
    model.save(out / "model")
    return ArtifactManifest.of(out / "model").digest


def train_to(step: int, parent: Path, out: Path) -> None:
    """Waits at the end of a step until the file `go` exists.

    Writes the finished steps, `warned` after a SIGTERM at that step, and the weights.
    """
    out.mkdir(exist_ok=True)
    steps = out / "steps"
    steps.write_text("")

    def tick(num_done: int, _: int) -> None:
        with steps.open("a") as file:
            file.write(f"{num_done}\n")
        is_warned = False
        while num_done == step and not (out / "go").exists():
            if not is_warned and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                (out / "warned").touch()  # the test removes it before the next run
                is_warned = True
            time.sleep(0.01)

    (out / "weights").write_text(train(parent, out, tick))


def train_with_one_warned(parent: Path, out: Path) -> None:
    """In several processes: the first receives SIGTERM while all synchronize."""
    reduce = dist.all_reduce

    def signal_and_reduce(tensor: torch.Tensor, *options: object) -> object:
        if options == (dist.ReduceOp.MAX,) and rank() == 0:
            dist.all_reduce = reduce
            signal.raise_signal(signal.SIGTERM)
        return reduce(tensor, *options)

    dist.all_reduce = signal_and_reduce
    with process_group():
        try:
            train(parent, out)
        except Preempted as error:
            (out / f"said-{rank()}").write_text(str(error))
