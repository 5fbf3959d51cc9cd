"""Verdicts on predicted turns of live episodes."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, get_args

from agentworld.domains.base import HISTORY, Domain, TurnKind, domain_of, is_match
from agentworld.evaluate.metrics import open_metrics
from agentworld.evaluate.predict import NOTHING
from agentworld.records.sample import Sample, SampleTurn
from agentworld.records.trajectory import Turn
from agentworld.records.validation import Answers

UNKNOWN = "unknown"
"""The kind of a turn whose action's effect is unknown."""


class Target(NamedTuple):
    """A turn to be predicted, with its groups."""

    turn: SampleTurn
    domain: str
    kind: str
    """The effect of its action, or `UNKNOWN`."""


TurnFilter = Callable[[Target], bool]


class JudgedTurn(NamedTuple):
    """A turn and its verdicts; null is a hole."""

    target: Target
    exact: bool | None
    values: Mapping[str, float | None]
    """The values of the other metrics."""
    failed: bool = False
    """The answer was truncated, or had no observation."""
    guess: str | None = None
    """The prediction; `NOTHING` if the answer failed."""


Episodes = Sequence[Sequence[JudgedTurn]]

Ask = Callable[[Sequence[Turn], str], Awaitable[str | None]]
"""Predicts the observation after these turns and an action; null if the engine failed."""


class Judge:
    """Compares predictions with the truth, by exact match and by these metrics."""

    def __init__(self, metrics: Sequence[str], embedding_model: str | None = None) -> None:
        """Raises InputError for an unknown metric or a missing model."""
        self._metrics = open_metrics(metrics, embedding_model)

    def judge(self, domain: Domain, turn: SampleTurn, guess: str | None) -> JudgedTurn:
        """Compares a prediction with the observation of the live environment."""
        target = target_of(domain, turn)
        if guess is None:
            return JudgedTurn(target, None, {})
        truth = turn.observation
        values = {name: metric(domain, guess, truth) for name, metric in self._metrics.items()}
        if guess == NOTHING:  # the truth may be empty, and a missing prediction is wrong
            wrong = {name: value if value is None else 0.0 for name, value in values.items()}
            return JudgedTurn(target, exact=False, values=wrong, failed=True, guess=NOTHING)
        return JudgedTurn(target, is_match(domain, guess, truth), values, guess=guess)


def target_of(domain: Domain, turn: SampleTurn) -> Target:
    """The turn with its kind."""
    return Target(turn, domain.name, domain.turn_kind(turn.action, turn.tags) or UNKNOWN)


def targets_of(sample: Sample) -> list[Target]:
    """The turns of a sample that are to be predicted."""
    domain = domain_of(sample.domain)
    return [target_of(domain, sample.turns[index]) for index in sample.targets]


async def free_run(
    judge: Judge,
    domain: Domain,
    turns: Sequence[SampleTurn],
    ask: Ask,
    *,
    judges_blank: bool = True,
) -> list[JudgedTurn]:
    """Predicts every turn of an episode from the model's own earlier predictions.

    After a failure there is no history to continue from: the turns after an engine's failure are
    holes, those after the model's own failure are wrong. No model can predict an empty observation:
    without `judges_blank`, a turn with an empty observation stays in the history as recorded, and
    is not judged.
    """
    history: list[Turn] = []
    guess: str | None = ""
    judged_turns: list[JudgedTurn] = []
    has_failed = False
    for turn in turns:
        if not (judges_blank or turn.observation.strip()):
            history.append(Turn(action=turn.action, observation=turn.observation))
            continue
        if not has_failed:
            guess = await ask(history, turn.action)
        judged_turns.append(judge.judge(domain, turn, guess))
        if guess:
            history.append(Turn(action=turn.action, observation=guess))
        else:
            has_failed = True
    return judged_turns


def exact(episodes: Episodes, turn_filter: TurnFilter) -> list[list[bool | None]]:
    """By episode, whether the selected turns were exactly right."""
    return [[turn.exact for turn in episode if turn_filter(turn.target)] for episode in episodes]


def values_of(episodes: Episodes, turn_filter: TurnFilter) -> dict[str, list[list[float | None]]]:
    """By metric and by episode, the values of the selected turns.

    A metric without any value is left out.
    """
    selected = [[turn for turn in episode if turn_filter(turn.target)] for episode in episodes]
    flat = (turn for episode in selected for turn in episode)
    names = {name for turn in flat for name, value in turn.values.items() if value is not None}
    return {
        name: [[turn.values.get(name) for turn in episode] for episode in selected]
        for name in sorted(names)
    }


def is_no_read_of_start(target: Target) -> bool:
    """False for a read that shows nothing that an earlier turn changed."""
    return target.kind != "read" or HISTORY in target.turn.tags


def answers_of(episodes: Episodes) -> Answers:
    """The number of requested turns, and of those without an answer that can be judged."""
    flat = [turn for episode in episodes for turn in episode]
    return Answers(
        num=len(flat),
        num_episodes=sum(any(turn.exact is not None for turn in episode) for episode in episodes),
        missing=sum(turn.exact is None for turn in flat),
        cut_off=sum(turn.failed for turn in flat),
    )


def judged_targets(episodes: Episodes) -> list[Target]:
    """The turns with a verdict."""
    return [turn.target for episode in episodes for turn in episode if turn.exact is not None]


def tags_of(targets: Iterable[Target]) -> list[str]:
    """The tags of turns in alphabetical order."""
    return sorted({tag for target in targets for tag in target.turn.tags})


def kinds_of(targets: Iterable[Target]) -> list[str]:
    """The kinds that occur: reads, writes, computations and unknown ones."""
    kinds = {target.kind for target in targets}
    return [kind for kind in (*get_args(TurnKind), UNKNOWN) if kind in kinds]


def is_any(_: Target) -> bool:
    """Selects every turn."""
    return True


def has_tag(tag: str) -> TurnFilter:
    """Selects the turns with a tag."""
    return lambda target: tag in target.turn.tags


def has_kind(kind: str) -> TurnFilter:
    """Selects the turns of a kind."""
    return lambda target: target.kind == kind


def has_domain(domain: str) -> TurnFilter:
    """Selects the turns of a domain."""
    return lambda target: target.domain == domain
