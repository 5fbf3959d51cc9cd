"""The scores of the rubric for a terminal by rules; an observation is a screen of lines."""

from agentworld.domains.package_text import read_text
from agentworld.domains.rubric import BEST, Rubric, RubricScore, grade, score_lines
from agentworld.domains.terminal.comparison import canonical, mask_volatile
from agentworld.domains.terminal.display import LINES
from agentworld.domains.terminal.transcript import PROMPT


def score_by_rules(predicted: str, truth: str) -> RubricScore:
    """Scores the last line as `consistency`: the prompt with its folder, or a program's line."""
    guess, true = _lines(predicted), _lines(truth)
    return score_lines(
        guess,
        true,
        format_score=_format(guess, true),
        consistency=grade(float(guess[-1] == true[-1])),
    )


RUBRIC = Rubric(read_text(__package__, "judge_prompt.txt"), score_by_rules)


def _lines(screen: str) -> list[str]:
    return mask_volatile(canonical(screen)).split("\n")


def _format(guess: list[str], true: list[str]) -> int:
    if len(guess) > LINES:
        return 1
    return BEST if bool(PROMPT.match(guess[-1])) == bool(PROMPT.match(true[-1])) else 3
