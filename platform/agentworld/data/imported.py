"""Trajectories that were recorded elsewhere, taken in as if explorers had made them here.

All are read before the first is written, so that nothing is half taken in. Those that are marked
as held out stay so. Where none is marked, a share of them is held out, each by its own digest, so
that one more trajectory changes the fate of no other.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from agentworld.data.hash_uniform import hash_uniform
from agentworld.data.importers import importer_of
from agentworld.errors import InputError
from agentworld.recipes.data import CollectRecipe
from agentworld.records.base import Digest, digest_file
from agentworld.records.collected import Collected
from agentworld.records.progress import Tick
from agentworld.records.trajectory import Trajectory
from agentworld.storage.trajectories import MANIFEST, write_trajectories

_PER_CHUNK = 1_000


def import_trajectories(recipe: CollectRecipe, source: Path, out: Path, tick: Tick) -> Digest:
    """Fills a folder with the trajectories of a file, or of a folder's files.

    Returns the digest of their manifest; raises InputError naming file, line and field of what is
    no trajectory.
    """
    importer = importer_of(recipe.format)
    before = importer.digest(source)
    marks = Counter(each.held_out for each in importer.read(source))
    if not marks:
        raise InputError(f"{source} holds no trajectory; name a file or a folder that does")
    episodes, transitions = Counter[bool](), Counter[bool]()
    domains: set[str] = set()
    chunks: dict[str, Digest] = {}
    for chunk in _chunks(importer.read(source)):
        trajectories = chunk if marks[True] else [_dealt(recipe, each) for each in chunk]
        name = f"recorded-{len(chunks):05d}.jsonl"
        write_trajectories(out / name, trajectories)
        chunks[name] = digest_file(out / name)
        for each in trajectories:
            domains.add(each.domain)
            episodes[each.held_out] += 1
            transitions[each.held_out] += len(each.turns)
        tick(episodes.total(), marks.total())
    if importer.digest(source) != before:
        raise InputError(f"{source} was changed while it was read; let it rest and try again")
    collected = Collected(
        chunks=chunks,
        domains=tuple(sorted(domains)),
        num_trajectories=episodes[False],
        num_transitions=transitions[False],
        num_held_out_trajectories=episodes[True],
        num_held_out_transitions=transitions[True],
    )
    collected.write(out / MANIFEST)
    return collected.digest


def _dealt(recipe: CollectRecipe, trajectory: Trajectory) -> Trajectory:
    """Held out or not, as its digest says."""
    place = hash_uniform(recipe.seed, "held out", trajectory.digest)
    return trajectory.model_copy(update={"held_out": place < recipe.held_out_share})


def _chunks(trajectories: Iterable[Trajectory]) -> Iterator[list[Trajectory]]:
    rest = iter(trajectories)
    while chunk := list(islice(rest, _PER_CHUNK)):
        yield chunk
