"""The second pass of `data prepare`: makes the samples of one batch as rows of the pools."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agentworld.data.filters import FilteredTrajectory, shorten
from agentworld.data.masking import turn_class
from agentworld.data.redaction import redact_trajectories
from agentworld.data.samples import make_sample, pool_of
from agentworld.data.summary import Summary
from agentworld.data.survey import SurveyJob, read_column
from agentworld.domains.base import UNSEEN, domain_of
from agentworld.records.sample import Pool, Sample
from agentworld.storage.batches import read_batch
from agentworld.storage.pools import PoolRows, pool_rows


class PoolJob(NamedTuple):
    """A surveyed batch, and which of its trajectories stay."""

    survey: SurveyJob
    remaining: npt.NDArray[np.bool_]


class BatchPools(NamedTuple):
    """What a batch adds to a data set."""

    rows: Mapping[Pool, PoolRows]
    summary: Summary
    removed: Counter[str]


def make_pools(job: PoolJob) -> BatchPools:
    """Makes the samples of one batch."""
    recipe, removed, summary = job.survey.recipe, Counter[str](), Summary()
    samples: dict[Pool, list[Sample]] = {}
    remaining = _remaining(job, summary)
    if recipe.redact:
        remaining = redact_trajectories(remaining, removed)
    for digest, trajectory in remaining:
        pool = pool_of(recipe, trajectory, digest)
        sample = make_sample(recipe, trajectory, digest, pool)
        if pool != "held_out" and _is_leak(sample):
            removed["held-out content in training"] += 1
        elif not sample.targets:
            removed["no target left"] += 1
        else:
            removed.update(_masked_classes(pool, sample))
            summary.add(trajectory)
            samples.setdefault(pool, []).append(sample)
    return BatchPools(
        {pool: pool_rows(pool_samples) for pool, pool_samples in samples.items()}, summary, removed
    )


def _remaining(job: PoolJob, summary: Summary) -> Iterator[FilteredTrajectory]:
    """The trajectories of a batch that stay, filtered as in its survey; counts the whole batch."""
    batch, recipe = job.survey.batch, job.survey.recipe
    digests = read_column(job.survey.path, "digests").tolist()
    removed = Counter[str]()  # as the survey counted it
    shortened = (
        shorten(trajectory, recipe.min_turns, removed)
        for trajectory in summary.read(read_batch(batch))
    )
    surveyed = (trajectory for trajectory in shortened if trajectory is not None)
    # The trajectories come first, so that those after the last digest are read and counted too.
    pairs = zip(surveyed, digests, strict=True)
    filtered = (FilteredTrajectory(digest, trajectory) for trajectory, digest in pairs)
    return compress(filtered, job.remaining.tolist())


def _is_leak(sample: Sample) -> bool:
    unseen = domain_of(sample.domain).has_unseen(sample.prompt.initial_state)
    return unseen or any(UNSEEN in turn.tags for turn in sample.turns)


def _masked_classes(pool: Pool, sample: Sample) -> list[str]:
    """A reason for each masked turn, with its class; in RL only one turn is a target by design."""
    masked = [turn for turn in sample.turns if not turn.target and pool != "rl"]
    return [f"masked {turn_class(turn.action, turn.observation)}" for turn in masked]
