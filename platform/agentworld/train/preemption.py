"""A training on a machine that may be taken away.

SIGTERM is the notice, and SIGUSR1, which `mpirun` hands on: the optimizer step that runs is ended,
its checkpoint written, and the process fails so that whoever started it begins it again. One that
comes after the last step is let pass: all that is left is to save. A second one, or a kill, ends it
at once, and the newest whole checkpoint is what is left.
"""

import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from agentworld.errors import Preempted
from agentworld.train.distributed import any_rank, on_rank_zero
from agentworld.train.resume import newer_checkpoints, newest_checkpoint, seal
from agentworld.train.zero import check_parts, make_whole

_NOTICES = (signal.SIGTERM, signal.SIGUSR1)


def train_to_end(trainer: Trainer) -> None:
    """Trains from the newest whole checkpoint in its folder, if there is one; raises Preempted."""
    notice, folder = _Notice(), Path(trainer.args.output_dir)
    trainer.add_callback(_ManifestCallback())
    trainer.add_callback(notice)
    # By its name: working copies of a bucket may lie elsewhere on each machine.
    name = on_rank_zero(lambda: newest_checkpoint(folder))
    newest = name and str(folder / name)
    check_parts(trainer, newest)
    with notice.listen():
        trainer.train(resume_from_checkpoint=newest)
    if notice.is_preempted:
        step = trainer.state.global_step
        raise Preempted(f"preempted; run it again: it resumes from step {step}")
    make_whole(trainer)


class _ManifestCallback(TrainerCallback):
    """Gives every checkpoint its manifest."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Takes away what is not whole: it would be kept in the place of one that is."""
        if state.is_world_process_zero:
            for broken in newer_checkpoints(Path(args.output_dir), state.global_step):
                shutil.rmtree(broken)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Waits for what other processes write into it."""
        args.distributed_state.wait_for_everyone()
        if state.is_world_process_zero:
            seal(Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")


class _Notice(TrainerCallback):
    """Whether the processes of a training end after the step that was last, as all agreed."""

    def __init__(self) -> None:
        self.is_preempted = False
        self._is_signalled = False
        """By this process; a signal may come while the others are asked."""

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Listens while the block runs; signals come to the main thread alone."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = [signal.signal(notice, self._on_signal) for notice in _NOTICES]
        try:
            yield
        finally:
            for notice, handler in zip(_NOTICES, before, strict=True):
                signal.signal(notice, handler)

    def _on_signal(self, *_: object) -> None:
        self._is_signalled = True
        for notice in _NOTICES:
            signal.signal(notice, signal.SIG_DFL)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """After each optimizer step; whichever process was told, all of them end after the same."""
        self.is_preempted = any_rank(self._is_signalled)
        if self.is_preempted:
            control.should_save = control.should_training_stop = True
