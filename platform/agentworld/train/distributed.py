"""Several processes that train one model: how they meet, and what the first does for all of them.

One process alone meets nobody, and does everything itself.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist

from agentworld.recipes.environment import from_environment
from agentworld.recipes.ranks import Ranks

_PATIENCE = timedelta(days=7)  # as long as a step may be tried; a peer that dies is noticed at once

_Value = TypeVar("_Value")


@contextmanager
def process_group() -> Iterator[None]:
    """Meets the other processes of this step, where its launcher says that there are some."""
    ranks = from_environment(Ranks)
    has_gpu = torch.cuda.is_available()
    if ranks.world_size > 1:
        if has_gpu:
            torch.cuda.set_device(ranks.local_rank)
        dist.init_process_group(
            "nccl" if has_gpu else "gloo", rank=ranks.rank, world_size=ranks.world_size
        )
    # No `finally`: to part takes all of them, and after a failure the others may wait elsewhere.
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def rank() -> int:
    """This process's place among those that train together, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def num_ranks() -> int:
    """How many processes train together."""
    return dist.get_world_size() if dist.is_initialized() else 1


def any_rank(holds: bool) -> bool:
    """Whether it holds for any of those who train together."""
    if num_ranks() == 1:
        return holds
    flag = torch.tensor(int(holds), device="cuda" if torch.cuda.is_available() else "cpu")
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag.item())


def on_rank_zero(make: Callable[[], _Value]) -> _Value:
    """What the first process makes once all have come here; all return it."""
    if num_ranks() == 1:
        return make()
    # A group of its own, over CPUs: what is made may take hours, a gradient never does.
    waiting = dist.new_group(backend="gloo", timeout=_PATIENCE)
    dist.barrier(waiting)
    values = [make() if rank() == 0 else None]
    dist.broadcast_object_list(values, group=waiting, device=torch.device("cpu"))
    dist.destroy_process_group(waiting)
    (value,) = values
    return value  # type: ignore[return-value]
