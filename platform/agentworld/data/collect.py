"""Records episodes of exploring policies in live environments.

The work is divided into chunks of a fixed number of episodes, and each chunk is written at once. A
repeated run reuses the finished chunks of a killed one. An episode depends on its number and the
recipe's seed only, not on the number of workers or their speed.
"""

import asyncio
import multiprocessing
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import count
from pathlib import Path
from typing import NamedTuple

from agentworld.data.explore import collected_domains, explore
from agentworld.data.workers import leave_with_parent
from agentworld.domains.live import check_available
from agentworld.errors import InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.records.base import Digest, digest_file
from agentworld.records.collected import Collected
from agentworld.records.progress import OnProgress
from agentworld.storage.trajectories import MANIFEST, read_trajectories, write_trajectories

EPISODES_PER_CHUNK = 50
_RECIPE = "recipe.json"


class _Chunk(NamedTuple):
    """Episodes that are written into one file."""

    name: str
    held_out: bool
    episodes: range


class _ChunkRecord(NamedTuple):
    """A chunk that is on disk."""

    chunk: _Chunk
    digest: Digest
    num_trajectories: int
    num_transitions: int


def collect(
    recipe: CollectRecipe,
    out: Path,
    on_progress: OnProgress,
    *,
    episodes_per_chunk: int = EPISODES_PER_CHUNK,
) -> Digest:
    """Fills a folder with trajectories; returns the digest of their manifest."""
    domains = collected_domains(recipe)
    check_available(domains)
    _claim(recipe, out)
    workers = ProcessPoolExecutor(
        recipe.num_workers,
        # Not fork: the caller may run threads, whose locks a forked worker would inherit.
        mp_context=multiprocessing.get_context("spawn"),
        initializer=leave_with_parent,
    )
    try:
        records = list(_make_all(recipe, out, episodes_per_chunk, workers, on_progress))
    finally:
        workers.shutdown(cancel_futures=True)
    manifest = _manifest(domains, records)
    for path in out.glob("*.jsonl"):
        if path.name not in manifest.chunks:  # begun before it was known that it is not needed
            path.unlink()
    manifest.write(out / MANIFEST)
    return manifest.digest


def _claim(recipe: CollectRecipe, out: Path) -> None:
    """Raises InputError if the folder has chunks of another recipe."""
    shaping = recipe.model_copy(update={"num_workers": 1})
    if (out / _RECIPE).is_file() and CollectRecipe.read(out / _RECIPE) != shaping:
        raise InputError(f"{out} holds episodes of another recipe; give an empty folder")
    shaping.write(out / _RECIPE)


def _make_all(
    recipe: CollectRecipe,
    out: Path,
    size: int,
    workers: ProcessPoolExecutor,
    on_progress: OnProgress,
) -> Iterator[_ChunkRecord]:
    yield from _make(recipe, out, workers, _held_out_chunks(recipe.num_held_out_episodes, size))
    num_transitions = 0
    for record in _make(recipe, out, workers, _training_chunks(size)):
        yield record
        num_transitions += record.num_transitions
        on_progress(min(num_transitions, recipe.num_transitions), recipe.num_transitions)
        if num_transitions >= recipe.num_transitions:
            return


def _held_out_chunks(num_episodes: int, size: int) -> Iterator[_Chunk]:
    for number, first in enumerate(range(0, num_episodes, size)):
        episodes = range(first, min(first + size, num_episodes))
        yield _Chunk(f"held-out-{number:05d}.jsonl", True, episodes)


def _training_chunks(size: int) -> Iterator[_Chunk]:
    """An endless stream of chunks, of which the caller takes as many as it needs."""
    for number in count():
        episodes = range(number * size, (number + 1) * size)
        yield _Chunk(f"episodes-{number:05d}.jsonl", False, episodes)


def _make(
    recipe: CollectRecipe, out: Path, workers: ProcessPoolExecutor, chunks: Iterator[_Chunk]
) -> Iterator[_ChunkRecord]:
    """Makes the chunks in order; as many are in progress as there are workers."""
    futures: deque[Future[_ChunkRecord]] = deque()
    for chunk in chunks:
        futures.append(workers.submit(_make_chunk, recipe, out, chunk))
        if len(futures) > recipe.num_workers:
            yield futures.popleft().result()
    for future in futures:
        yield future.result()


def _make_chunk(recipe: CollectRecipe, out: Path, chunk: _Chunk) -> _ChunkRecord:
    path = out / chunk.name
    if not path.is_file():
        episodes = asyncio.run(explore(recipe, chunk.episodes, held_out=chunk.held_out))
        write_trajectories(path, episodes)
    lengths = [len(trajectory.turns) for trajectory in read_trajectories(path)]
    return _ChunkRecord(chunk, digest_file(path), len(lengths), sum(lengths))


def _manifest(domains: list[str], records: list[_ChunkRecord]) -> Collected:
    training = [record for record in records if not record.chunk.held_out]
    held_out = [record for record in records if record.chunk.held_out]
    return Collected(
        chunks={record.chunk.name: record.digest for record in records},
        domains=tuple(domains),
        num_trajectories=sum(record.num_trajectories for record in training),
        num_transitions=sum(record.num_transitions for record in training),
        num_held_out_trajectories=sum(record.num_trajectories for record in held_out),
        num_held_out_transitions=sum(record.num_transitions for record in held_out),
        num_broken=sum(len(record.chunk.episodes) - record.num_trajectories for record in records),
    )
