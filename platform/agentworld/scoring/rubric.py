"""Five questions to a predicted observation, each answered with 1 to 5, by rules.

The dimensions are those of Qwen-AgentWorld section 4.2. All that is counted is what agrees
with the truth, line by line or word by word: text that the truth does not hold, praise of
itself included, can lower a score and never raise it.
"""

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from agentworld.domains.terminal.grammar import Screen, is_prompt_line, read_screen

BEST = 5
_TO_REWARD = 5


class RubricScore(NamedTuple):
    """1 is very poor and 5 excellent; 0 is a dimension that a judge left out."""

    format: int
    """The form of an observation: output, then one prompt line."""
    factuality: int
    """The true lines of output, and no others."""
    consistency: int
    """The prompt line: exit status and folder follow from what came before."""
    realism: int
    """What is silent stays silent, and nothing shown is invented."""
    quality: int
    """As much as the truth says, and not more."""

    @property
    def mean(self) -> float:
        """Of the dimensions that are there."""
        scores = [value for value in self if value > 0]
        return sum(scores) / len(scores)

    @property
    def reward(self) -> float:
        """5 to 25 (section 3.4)."""
        return self.mean * _TO_REWARD


def score_by_rules(predicted: str, truth: str) -> RubricScore:
    """The rules' answers."""
    guessed, true = read_screen(predicted.strip("\n")), read_screen(truth.strip("\n"))
    return RubricScore(
        format=_format(guessed),
        factuality=_grade(_agreement(guessed.lines, true.lines)),
        consistency=_grade(_prompt_agreement(guessed, true)),
        realism=_grade(_precision(_words(guessed), _words(true))),
        quality=_grade(_coverage(_words(guessed), _words(true))),
    )


def _format(guessed: Screen) -> int:
    if not guessed.prompt:
        return 1
    return 3 if any(map(is_prompt_line, guessed.lines)) else BEST


def _prompt_agreement(guessed: Screen, true: Screen) -> float:
    return ((guessed.status == true.status) + (guessed.folder == true.folder)) / 2


def _agreement(guessed: Iterable[str], true: Iterable[str]) -> float:
    """F1 over lines."""
    mine, theirs = Counter(guessed), Counter(true)
    if not mine and not theirs:
        return 1.0
    return 2 * (mine & theirs).total() / (mine.total() + theirs.total())


def _precision(guessed: Counter[str], true: Counter[str]) -> float:
    """Share of what is shown that is true; of nothing, whether nothing was to be shown."""
    if not guessed:
        return float(not true)
    return (guessed & true).total() / guessed.total()


def _coverage(guessed: Counter[str], true: Counter[str]) -> float:
    """What is true of the longer one."""
    longer = max(guessed.total(), true.total())
    return (guessed & true).total() / longer if longer else 1.0


def _words(screen: Screen) -> Counter[str]:
    return Counter(word for line in screen.lines for word in line.split())


def _grade(share: float) -> int:
    return 1 + round((BEST - 1) * share)
