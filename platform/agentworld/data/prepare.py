"""Trajectories become samples in disjoint pools, and a manifest that names them all.

Every trajectory goes to one pool whole. A training pool never holds a word that is kept
for held-out episodes, and what is held out must be worth predicting.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from agentworld.data.cut import cut, pool_of
from agentworld.data.filters import Sieve
from agentworld.data.masking import turn_class
from agentworld.domains.terminal.history import has_unseen_word
from agentworld.domains.terminal.prompts import DOMAIN
from agentworld.errors import InputError
from agentworld.recipes.data import PrepareRecipe
from agentworld.records.dataset import DataSet, PoolFile
from agentworld.records.progress import Tick
from agentworld.records.sample import POOLS, Pool, Sample
from agentworld.storage.pools import MANIFEST, PoolWriter
from agentworld.storage.trajectories import read_collected, read_trajectories

_MIN_OUTPUT_SHARE = 1 / 2
_MIN_HISTORY_SHARE = 1 / 3


def prepare(recipe: PrepareRecipe, collected: Path, out: Path, tick: Tick) -> DataSet:
    """Fills a folder with pools; raises InputError where they would be of no use."""
    _check_shares(recipe)
    source = read_collected(collected)
    out.mkdir(parents=True, exist_ok=True)
    files = [collected / name for name in source.chunks]
    sieve = Sieve(recipe.min_turns)
    with ExitStack() as stack:
        writers = {pool: stack.enter_context(PoolWriter(out / f"{pool}.parquet")) for pool in POOLS}
        for pool, sample in _samples(recipe, files, sieve, tick):
            writers[pool].add(sample)
    dataset = DataSet(
        domain=DOMAIN,
        trajectories=source.digest,
        recipe=recipe.digest,
        pools={pool: writer.summary() for pool, writer in writers.items()},
        filtered=dict(sorted(sieve.removed.items())),
    )
    _check_pools(dataset)
    dataset.write(out / MANIFEST)
    return dataset


def _samples(
    recipe: PrepareRecipe, files: Sequence[Path], sieve: Sieve, tick: Tick
) -> Iterator[tuple[Pool, Sample]]:
    for number, file in enumerate(files, start=1):
        for digest, trajectory in sieve.pass_on(read_trajectories(file)):
            pool = pool_of(recipe, trajectory, digest)
            sample = cut(recipe, trajectory, digest, pool)
            if pool != "held_out" and _is_leak(sample):
                sieve.removed["held-out word in training"] += 1
            elif not sample.targets:
                sieve.removed["no target left"] += 1
            else:
                sieve.removed.update(_masked(pool, sample))
                yield pool, sample
        tick(number, len(files))


def _is_leak(sample: Sample) -> bool:
    unseen = has_unseen_word(sample.prompt.initial_state)
    return unseen or any(turn.has_unseen_word for turn in sample.turns)


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
        if pool != "held_out" and file.unseen_share:
            raise ValueError(f"the training pool {pool} holds a held-out word")
    _check_held_out(dataset.pools["held_out"])


def _check_held_out(file: PoolFile) -> None:
    if _is_below(file.output_share, _MIN_OUTPUT_SHARE, file.num_turns):
        raise InputError(
            f"only {file.output_share:.0%} of the held-out turns show output, and half of them"
            " should: collect more held-out episodes, or explorers with more commands that show"
        )
    if _is_below(file.history_share, _MIN_HISTORY_SHARE, file.num_turns):
        raise InputError(
            f"only {file.history_share:.0%} of the held-out turns depend on earlier turns, and a"
            " third should: collect more held-out episodes, longer ones (turns_per_episode), or"
            " fewer errands (errand_share)"
        )


def _is_below(share: float, minimum: float, num_turns: int) -> bool:
    """By more than the two standard errors that so few turns are off by chance."""
    return share < minimum - 2 * math.sqrt(minimum * (1 - minimum) / num_turns)
