"""Trajectories become samples in disjoint pools, and a manifest that names them all.

Every trajectory goes to one pool whole. A training pool never holds what its domain keeps for
held-out episodes, and what is held out must be worth predicting.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from agentworld.data.filters import TrajectoryFilter
from agentworld.data.masking import turn_class
from agentworld.data.samples import make_sample, pool_of
from agentworld.data.summary import Summary
from agentworld.domains.base import UNSEEN, domain_of
from agentworld.errors import InputError
from agentworld.recipes.data import PrepareRecipe
from agentworld.records.dataset import DataSet, Parent, PoolFile
from agentworld.records.progress import Tick
from agentworld.records.sample import POOLS, Pool, Sample
from agentworld.storage.pools import MANIFEST, PoolWriter
from agentworld.storage.trajectories import read_collected, read_trajectories


def prepare(recipe: PrepareRecipe, collected: Path, out: Path, tick: Tick) -> DataSet:
    """Fills a folder with pools; raises InputError where they would be of no use."""
    _check_shares(recipe)
    source = read_collected(collected)
    out.mkdir(parents=True, exist_ok=True)
    files = [collected / name for name in source.chunks]
    trajectory_filter, summary = TrajectoryFilter(recipe.min_turns), Summary()
    with ExitStack() as stack:
        writers = {pool: stack.enter_context(PoolWriter(out / f"{pool}.parquet")) for pool in POOLS}
        for pool, sample in _samples(recipe, files, trajectory_filter, summary, tick):
            writers[pool].add(sample)
    dataset = DataSet(
        parents=(Parent.of(source),),
        recipe=recipe.model_dump(mode="json"),
        pools={pool: writer.summary() for pool, writer in writers.items()},
        filtered=dict(sorted(trajectory_filter.removed.items())),
        **summary.fields(),
    )
    _check_pools(dataset)
    dataset.write(out / MANIFEST)
    return dataset


def _samples(
    recipe: PrepareRecipe,
    files: Sequence[Path],
    trajectory_filter: TrajectoryFilter,
    summary: Summary,
    tick: Tick,
) -> Iterator[tuple[Pool, Sample]]:
    for number, file in enumerate(files, start=1):
        for digest, trajectory in trajectory_filter.apply(summary.read(read_trajectories(file))):
            pool = pool_of(recipe, trajectory, digest)
            sample = make_sample(recipe, trajectory, digest, pool)
            if pool != "held_out" and _is_leak(sample):
                trajectory_filter.removed["held-out content in training"] += 1
            elif not sample.targets:
                trajectory_filter.removed["no target left"] += 1
            else:
                trajectory_filter.removed.update(_masked(pool, sample))
                summary.add(trajectory, sample)
                yield pool, sample
        tick(number, len(files))


def _is_leak(sample: Sample) -> bool:
    unseen = domain_of(sample.domain).has_unseen(sample.prompt.initial_state)
    return unseen or any(UNSEEN in turn.tags for turn in sample.turns)


def _masked(pool: Pool, sample: Sample) -> list[str]:
    """Turns whose loss does not count, by class; in RL the other turns are history by design."""
    masked = [turn for turn in sample.turns if not turn.target and pool != "rl"]
    return [f"masked {turn_class(turn.action, turn.observation)}" for turn in masked]


def _check_shares(recipe: PrepareRecipe) -> None:
    if recipe.cpt_share + recipe.sft_share >= 1:
        raise InputError(
            f"cpt_share {recipe.cpt_share} and sft_share {recipe.sft_share} leave nothing for RL;"
            " lower one of them"
        )


def _check_pools(dataset: DataSet) -> None:
    for pool, file in dataset.pools.items():
        if not file.num_samples:
            raise InputError(f"the pool {pool} is empty; collect more episodes for it")
        if pool != "held_out" and file.share(UNSEEN):
            raise ValueError(f"the training pool {pool} holds held-out content")
    for domain in dataset.domains if len(dataset.domains) == 1 else ():
        _check_held_out(domain, dataset.pools["held_out"])  # tags of several are counted together


def _check_held_out(domain: str, file: PoolFile) -> None:
    for tag, minimum in domain_of(domain).minimum_shares.items():
        if _is_below(file.share(tag), minimum, file.num_turns):
            raise InputError(
                f"only {file.share(tag):.0%} of the held-out turns have the tag {tag!r}, and"
                f" {minimum:.0%} should in the domain {domain}: collect more held-out episodes,"
                " longer ones (turns_per_episode), or fewer that pursue a task (task_share)"
            )


def _is_below(share: float, minimum: float, num_turns: int) -> bool:
    """By more than the two standard errors that so few turns are off by chance."""
    return share < minimum - 2 * math.sqrt(minimum * (1 - minimum) / num_turns)
