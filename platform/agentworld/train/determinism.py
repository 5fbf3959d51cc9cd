"""torch's deterministic algorithms, which add up in one order, for a part of a process's life."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def deterministic_algorithms(*, enabled: bool) -> Iterator[None]:
    """Uses them while the block runs, if enabled; an operation without one raises RuntimeError."""
    before = torch.are_deterministic_algorithms_enabled()
    if enabled:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at cuBLAS's first use
        torch.use_deterministic_algorithms(mode=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
