"""Ends a training with a checkpoint when its machine is preempted.

SIGTERM is the notice. The current optimizer step is finished and its checkpoint written. Then the
process fails, so that its launcher starts it again. A notice after the last step is ignored,
because only saving remains. A second notice, or a kill, ends the process at once; a new start
continues from the newest complete checkpoint.
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
from agentworld.train.zero import release


def train_to_end(trainer: Trainer) -> None:
    """Trains from the newest complete checkpoint in its folder, if any; raises Preempted."""
    notice, folder = _Notice(), Path(trainer.args.output_dir)
    trainer.add_callback(_ManifestCallback())
    trainer.add_callback(notice)
    # by name, because each machine's working copy of a bucket may have another path
    name = on_rank_zero(lambda: newest_checkpoint(folder))
    newest = name and str(folder / name)
    with notice.listen():
        trainer.train(resume_from_checkpoint=newest)
    if notice.is_preempted:
        step = trainer.state.global_step
        raise Preempted(f"preempted; run it again: it resumes from step {step}")
    release(trainer)


class _ManifestCallback(TrainerCallback):
    """Gives every checkpoint its manifest."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Removes incomplete checkpoints; they would count towards the number that is kept."""
        if state.is_world_process_zero:
            for broken in newer_checkpoints(Path(args.output_dir), state.global_step):
                shutil.rmtree(broken)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Writes the manifest when all processes have written their part."""
        args.distributed_state.wait_for_everyone()
        if state.is_world_process_zero:
            seal(Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")


class _Notice(TrainerCallback):
    """Receives the signal, and stops all processes of the training after the same step."""

    def __init__(self) -> None:
        self.is_preempted = False
        self._is_signalled = False
        """Whether this process got a signal; it may arrive while the ranks exchange the flag."""

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Handles the signal while the block runs; only the main thread gets signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, self._on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _on_signal(self, *_: object) -> None:
        self._is_signalled = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """After each optimizer step: if any process got a signal, all stop after this step."""
        self.is_preempted = any_rank(self._is_signalled)
        if self.is_preempted:
            control.should_save = control.should_training_stop = True
