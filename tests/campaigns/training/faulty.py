"""A training process that injects a fault into itself at an instant.

An instant is the end of an optimizer step, or a change of a name in the store: a file that is
opened for writing, a folder, a rename, a removal. A seed chooses its number, so that faults also
happen between the files of a checkpoint. The page of a training is written every few seconds, so
the same number may be another instant in the next run.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agentworld.recipes.environment import exit_status, from_environment
from agentworld.recipes.ranks import Ranks
from agentworld.steps.run import run_by_name
from campaigns.harness.journal import Journal
from campaigns.training.disk import enter, fill

FaultKind = Literal["killed", "told to end", "told and killed", "not a number", "disk full"]
_NAME_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink"}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Fault(NamedTuple):
    """The fault of one process."""

    kind: FaultKind
    rank: int
    instant: int
    """From 1."""
    seconds: float = 0.0
    """The delay between the instant and the kill."""
    left_bytes: int = 0
    """The free space on a full disk."""


class Attempt(NamedTuple):
    """One start of a training."""

    disk: int
    """The process that owns the disk of the store."""
    journal: Path
    training: str
    number: int
    """Its number among all attempts of a campaign."""
    step: str
    arguments: tuple[str, ...]
    """The arguments of the step's entry; the second is the store."""
    in_float32: bool
    fault: Fault | None


def take_part(attempt: Attempt) -> None:
    """Runs the step, and exits with the status of the process that a launcher would start."""
    enter(attempt.disk)
    rank = from_environment(Ranks).rank
    journal = Journal(attempt.journal)

    def note(**fields: object) -> None:
        journal.write(attempt=attempt.number, training=attempt.training, rank=rank, **fields)

    fault = attempt.fault if attempt.fault and attempt.fault.rank == rank else None
    process = _Process(Path(attempt.arguments[1]), fault, note)
    process.watch()
    if attempt.in_float32:
        _compute_in_float32()
    status = exit_status(lambda: run_by_name(attempt.step, *attempt.arguments))
    process.end()
    sys.stdout.flush()
    os._exit(status)


class _Process:
    """Counts instants, records steps, and injects the fault."""

    def __init__(self, store: Path, fault: Fault | None, note: Callable[..., None]) -> None:
        self._store = store
        self._fault = fault
        self._note = note
        self._num_instants = 0
        self._poisons = False

    def watch(self) -> None:
        """Starts counting."""
        from agentworld.train import trainer

        sys.addaudithook(self._on_event)
        at_step_end = trainer.TrainerProgress.on_step_end
        compute_loss = trainer.NextTokenTrainer.compute_loss

        def on_step_end(
            progress: Any, args: Any, state: Any, control: Any, **options: object
        ) -> None:
            at_step_end(progress, args, state, control, **options)
            self._note(kind="step", step=state.global_step, checkpoints=args.output_dir)
            self._reach()

        def maybe_poisoned(trainer: Any, *arguments: Any, **options: Any) -> Any:
            loss = compute_loss(trainer, *arguments, **options)
            if not self._poisons:
                return loss
            self._poisons = False
            self._note(kind="fault", fault="not a number")
            return loss * float("nan")

        trainer.TrainerProgress.on_step_end = on_step_end
        trainer.NextTokenTrainer.compute_loss = maybe_poisoned

    def end(self) -> None:
        """Records the number of instants."""
        self._note(kind="end", instants=self._num_instants)

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not (isinstance(flags, int) and flags & _WRITES):
                return
        elif event in _NAME_CHANGES:
            path = arguments[0]
        else:
            return
        if isinstance(path, str | os.PathLike) and Path(path).is_relative_to(self._store):
            self._reach()

    def _reach(self) -> None:
        self._num_instants += 1
        if self._fault and self._num_instants == self._fault.instant:
            self._do(self._fault)

    def _do(self, fault: Fault) -> None:
        if fault.kind == "not a number":
            self._poisons = True
            return
        self._note(kind="fault", fault=fault.kind)
        if fault.kind == "disk full":
            fill(self._store.parent, fault.left_bytes)
        if fault.kind != "killed" and fault.kind != "disk full":
            os.kill(os.getpid(), signal.SIGTERM)
        if fault.kind in ("killed", "told and killed"):
            _kill_after(fault.seconds)


def _kill_after(seconds: float) -> None:
    """Kills this process at any point, also between two bytes of a file."""
    if not seconds:
        os.kill(os.getpid(), signal.SIGKILL)
    process = os.pidfd_open(os.getpid())
    if os.fork() == 0:
        try:
            # An open file would keep the lock of the step.
            os.closerange(0, process)
            os.closerange(process + 1, os.sysconf("SC_OPEN_MAX"))
            time.sleep(seconds)
            with suppress(ProcessLookupError):  # it has ended already
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os._exit(0)


def _compute_in_float32() -> None:
    """Also logs a loss for each step.

    In bfloat16, the sums of two halves differ from those of the whole. Muon alone in bfloat16 turns
    rounding errors of float32 into differences of 1/1000.
    """
    import torch

    from agentworld.train import muon, trainer, zero

    arguments_of = trainer._arguments

    def arguments(*args: Any) -> Any:
        arguments = arguments_of(*args)
        arguments.logging_steps = 1
        return arguments

    trainer.computing = lambda stage, **_: zero.computing(stage, in_bfloat16=False)
    trainer._arguments = arguments
    muon.orthogonalize = partial(muon.orthogonalize, dtype=torch.float32)
