"""A pool's file of samples, as `prepare` writes one."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from agentworld.records.dataset import PoolFile
from agentworld.records.sample import Sample
from agentworld.storage.pools import PoolWriter, pool_rows


def write_pool(path: Path, samples: Iterable[Sample], samples_per_batch: int = 1_000) -> PoolFile:
    """Writes a pool, atomically."""
    remaining = iter(samples)
    with PoolWriter(path) as pool:
        while batch := list(islice(remaining, samples_per_batch)):
            pool.add(pool_rows(batch))
    return pool.summary()
