"""Replays live episodes in a served simulator, through its own service, and compares observations.

The actions of a live episode are taken in the simulator in order, whatever it shows.
"""

import time
from collections.abc import Sequence

import numpy as np

from agentworld.client.simulator import SimulatorClient
from agentworld.domains.base import domain_of
from agentworld.errors import SimulatorError
from agentworld.evaluate.bootstrap import Values, estimate
from agentworld.evaluate.judging import (
    Judge,
    JudgedTurn,
    TurnFilter,
    answers_of,
    exact,
    free_run,
    has_kind,
    has_tag,
    is_any,
    judged_targets,
    kinds_of,
    tags_of,
    target_of,
    values_of,
)
from agentworld.evaluate.predict import NOTHING, OWN_FAILURES
from agentworld.evaluate.served_leads import served_leads
from agentworld.recipes.serve import NightlyRecipe
from agentworld.records.base import Record
from agentworld.records.episode import EpisodeOpening
from agentworld.records.latency import Latency
from agentworld.records.report import Estimate, Figures, FreeRunningScore
from agentworld.records.sample import Sample
from agentworld.records.trajectory import Turn

_PERCENTILES = (50, 99)


class ReplayedTurn(Record):
    """The verdicts on a turn; null is a hole."""

    exact: bool | None = None
    values: dict[str, float | None] = {}
    """The values of the other metrics."""
    failed: bool = False
    """Whether this answer or an earlier one was truncated or had no observation."""
    seconds: float | None = None
    """Seconds until the simulator answered; null if it did not."""


class ReplayedEpisode(Record):
    """A live episode, replayed in a simulator."""

    episode: str | None = None
    """Its id at the simulator; null if none could be opened."""
    turns: tuple[ReplayedTurn, ...]
    problem: str = ""
    """Why there are holes."""

    @property
    def is_judged(self) -> bool:
        """Whether any of its turns has a verdict."""
        return any(turn.exact is not None for turn in self.turns)


async def replay(judge: Judge, world: SimulatorClient, run: str, sample: Sample) -> ReplayedEpisode:
    """Replays an episode in a run, to its end or to the first failure.

    An answer that is truncated or has no observation is the simulator's own failure and wrong, and
    so are the turns after it. Any other failure is ours: the turns from there on are holes.
    """
    opening = EpisodeOpening(
        run=run,
        domain=sample.domain,
        initial_state=sample.prompt.initial_state,
        turn_limit=len(sample.turns),
    )
    try:
        episode = (await world.begin(opening)).episode
    except SimulatorError as error:
        return ReplayedEpisode(turns=(ReplayedTurn(),) * len(sample.turns), problem=str(error))
    seconds: list[float] = []
    problem = ""

    async def ask(_: Sequence[Turn], action: str) -> str | None:
        nonlocal problem
        start = time.monotonic()
        try:
            observation = (await world.step(episode, action)).observation
        except SimulatorError as error:
            if error.kind in OWN_FAILURES:
                return NOTHING
            problem = str(error)
            return None
        seconds.append(time.monotonic() - start)
        return observation

    judged_turns = await free_run(judge, domain_of(sample.domain), sample.turns, ask)
    waits = [*seconds, *[None] * (len(judged_turns) - len(seconds))]
    turns = (
        ReplayedTurn(exact=turn.exact, values=dict(turn.values), failed=turn.failed, seconds=wait)
        for turn, wait in zip(judged_turns, waits, strict=True)
    )
    return ReplayedEpisode(episode=episode, turns=tuple(turns), problem=problem)


def free_running_score(
    judge: Judge,
    samples: Sequence[Sample],
    replays: Sequence[ReplayedEpisode],
    recipe: NightlyRecipe,
) -> FreeRunningScore:
    """The score of these samples; raises SimulatorError if no turn has a verdict."""
    if not any(episode.is_judged for episode in replays):
        problems = {episode.problem: None for episode in replays}
        raise SimulatorError(
            f"the simulator answered none of {len(samples)} episodes: {'; '.join(problems)}",
            retryable=True,
        )
    episodes = [_judge(*pair) for pair in zip(samples, replays, strict=True)]

    def of(values: Values) -> Estimate:
        return estimate(values, recipe.num_resamples, recipe.seed)

    def group(turn_filter: TurnFilter) -> Figures:
        metrics = values_of(episodes, turn_filter).items()
        return Figures(
            exact_match=of(exact(episodes, turn_filter)),
            metrics={name: of(values) for name, values in metrics},
        )

    targets = judged_targets(episodes)
    return FreeRunningScore(
        **dict(group(is_any)),
        by_tag={tag: of(exact(episodes, has_tag(tag))) for tag in tags_of(targets)},
        by_kind={kind: group(has_kind(kind)) for kind in kinds_of(targets)},
        answers=answers_of(episodes),
        leads=served_leads(judge, samples, episodes, recipe),
    )


def latency(replays: Sequence[ReplayedEpisode]) -> Latency:
    """The latency over all answered steps."""
    seconds = [
        turn.seconds for episode in replays for turn in episode.turns if turn.seconds is not None
    ]
    if not seconds:
        return Latency(p50_seconds=None, p99_seconds=None)
    p50, p99 = np.percentile(seconds, _PERCENTILES)
    return Latency(p50_seconds=float(p50), p99_seconds=float(p99))


def _judge(sample: Sample, episode: ReplayedEpisode) -> list[JudgedTurn]:
    pairs = zip(sample.turns, episode.turns, strict=True)
    domain = domain_of(sample.domain)
    return [
        JudgedTurn(target_of(domain, turn), outcome.exact, outcome.values, outcome.failed)
        for turn, outcome in pairs
    ]
