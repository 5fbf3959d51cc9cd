"""Several processes that train one model: their process group, and work that only rank 0 does.

A single process has no process group and does everything itself.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist

from agentworld.errors import Preempted
from agentworld.recipes.environment import from_environment
from agentworld.recipes.ranks import Ranks

_PATIENCE = timedelta(days=7)  # the longest run of a step; a peer that dies is noticed at once

_Value = TypeVar("_Value")


@contextmanager
def process_group() -> Iterator[None]:
    """Joins the process group of this step, if its launcher started several processes.

    Raises Preempted if another process is lost.
    """
    ranks = from_environment(Ranks)
    has_gpu = torch.cuda.is_available()
    if ranks.world_size > 1:
        if has_gpu:
            torch.cuda.set_device(ranks.local_rank)
        dist.init_process_group(
            "nccl" if has_gpu else "gloo", rank=ranks.rank, world_size=ranks.world_size
        )
    # No `finally`: all ranks must leave the group together, and after a failure others may be
    # waiting elsewhere.
    try:
        yield
    except RuntimeError as error:
        if not _is_of_another_rank(error):
            raise
        raise Preempted(
            "another process of this training ended; start all of them again: they resume from the"
            " newest whole checkpoint"
        ) from error
    if dist.is_initialized():
        dist.destroy_process_group()


def _is_of_another_rank(error: RuntimeError) -> bool:
    """Recognises errors of gloo by their text, because they have no class of their own."""
    return isinstance(error, dist.DistError) or "gloo/transport" in str(error)


def rank() -> int:
    """The rank of this process, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def num_ranks() -> int:
    """The number of processes that train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def any_rank(holds: bool) -> bool:
    """Whether the value is true on any rank."""
    if num_ranks() == 1:
        return holds
    flag = torch.tensor(int(holds), device="cuda" if torch.cuda.is_available() else "cpu")
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag.item())


@contextmanager
def patient_group() -> Iterator[dist.ProcessGroup]:
    """All processes in a CPU group with a long timeout, for work that may take one process hours.

    No `finally`, as in `process_group`.
    """
    group = dist.new_group(backend="gloo", timeout=_PATIENCE)
    yield group
    dist.destroy_process_group(group)


def on_rank_zero(make: Callable[[], _Value]) -> _Value:
    """Waits for all processes, runs the work on rank 0, and returns its result on all."""
    if num_ranks() == 1:
        return make()
    with patient_group() as waiting:
        dist.barrier(waiting)
        values = [make() if rank() == 0 else None]
        dist.broadcast_object_list(values, group=waiting, device=torch.device("cpu"))
    (value,) = values
    return value  # type: ignore[return-value]
