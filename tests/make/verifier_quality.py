"""The accuracy of a domain's verifier on episodes that were recorded twice."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from random import Random
from typing import NamedTuple

from agentworld.domains.base import Domain, verdict_of
from make.changed_observations import (
    FORMS,
    WRONG,
    Case,
    Forms,
    meaning,
    tolerated_change,
    wrong_change,
)
from make.recorded_twice import RUNTIME_FORMS, Episode

_NUM_REWRITES = 20
"""For each observation with runtime metadata, because few turns have any."""


class Share(NamedTuple):
    """A count and its total."""

    num: int = 0
    total: int = 0

    @property
    def value(self) -> float:
        """Between 0 and 1; raises ZeroDivisionError if the total is 0."""
        return self.num / self.total

    def add(self, holds: bool | None) -> "Share":
        return Share(self.num + bool(holds), self.total + 1)


class Quality(NamedTuple):
    """The accuracy for turns that were recorded twice, and for changes of those with a verdict."""

    replay_agreement: Share
    """Turns whose two observations have the same bytes."""
    verdict_coverage: Share
    second_truth_pass: Share
    tolerated_pass: Share
    killed: dict[str, Share]
    """By kind of wrong change."""
    mistakes: list[str]
    """Each wrong verdict: the kind, the truth and the judged observation."""


class _Turn(NamedTuple):
    action: str
    truth: str
    previous: str | None
    second: str
    stale: str | None
    is_failure: bool


def measure_quality(domain: Domain, episodes: Sequence[Episode], seed: str = "1") -> Quality:
    """Judges every second observation, and one change of each kind for each first one."""
    rng, forms = Random(f"quality {seed}"), [FORMS[name] for name in RUNTIME_FORMS[domain.name]]
    turns = list(_turns(domain, episodes, forms))
    judged = [turn for turn in turns if verdict_of(domain, turn.truth, turn.truth) is not None]
    shares: dict[str, Share] = defaultdict(Share)
    mistakes = list[str]()

    def judge(kind: str, text: str | None, turn: _Turn, *, expected: bool) -> None:
        if text is not None:
            is_right = verdict_of(domain, text, turn.truth) is expected
            shares[kind] = shares[kind].add(is_right)
            if not is_right:
                mistakes.append(f"{kind}: {turn.action!r} {turn.truth!r} {text!r}")

    outcomes = _Others(turns)
    for turn in judged:
        judge("second", turn.second, turn, expected=True)
        for _ in range(_NUM_REWRITES):
            judge("tolerated", tolerated_change(rng, turn.truth, forms), turn, expected=True)
        case = Case(
            turn.truth, turn.previous, turn.stale, turn.is_failure, outcomes.outcome(rng, turn)
        )
        for kind in WRONG:
            judge(kind, wrong_change(kind, rng, case, forms), turn, expected=False)
    return Quality(
        Share(sum(turn.truth == turn.second for turn in turns), len(turns)),
        Share(len(judged), len(turns)),
        shares["second"],
        shares["tolerated"],
        {kind: shares[kind] for kind in WRONG},
        mistakes,
    )


def _turns(domain: Domain, episodes: Sequence[Episode], forms: Forms) -> Iterator[_Turn]:
    for episode in episodes:
        previous = None
        for turn in episode:
            # A difference between two equal runs says nothing about an earlier change.
            is_stable = meaning(turn.first, forms) == meaning(turn.second, forms)
            stale = turn.stale if is_stable else None
            is_failure = domain.is_failure(turn.first)
            yield _Turn(turn.action, turn.first, previous, turn.second, stale, is_failure)
            previous = turn.first


class _Others:
    """Failures by their program, and successes likewise."""

    def __init__(self, turns: Sequence[_Turn]) -> None:
        self._turns: dict[tuple[str, bool], list[_Turn]] = defaultdict(list)
        for turn in turns:
            for key in (turn.action, _program(turn.action), ""):
                self._turns[key, turn.is_failure].append(turn)

    def outcome(self, rng: Random, turn: _Turn) -> str | None:
        """The opposite outcome's observation of the same action, or the same program, or any other
        one, below the lines that this turn shares with the previous one.
        """
        for key in (turn.action, _program(turn.action), ""):
            if turns := self._turns.get((key, not turn.is_failure)):
                other = rng.choice(turns)
                common = _common_lines(turn)
                later_lines = other.truth.split("\n")[len(_common_lines(other)) :]
                return "\n".join([*common, *later_lines])
        return None


def _program(action: str) -> str:
    """The first word of a command, typed or not, or the name of a tool."""
    words = re.findall(r"[A-Za-z]\w+", action)
    return next((word for word in words if word not in ("name", "arguments", "keystrokes")), "?")


def _common_lines(turn: _Turn) -> list[str]:
    """The common first lines of its observation and the previous one."""
    if turn.previous is None:
        return []
    pairs = zip(turn.previous.split("\n"), turn.truth.split("\n"), strict=False)
    return [line for line, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
