"""The scores of the rubric for a shell by rules; an observation is output and a prompt line."""

from agentworld.domains.package_text import read_text
from agentworld.domains.rubric import BEST, Rubric, RubricScore, grade, score_lines
from agentworld.domains.shell.grammar import Screen, is_prompt_line, read_screen


def score_by_rules(predicted: str, truth: str) -> RubricScore:
    """Scores the prompt line as `consistency`: earlier turns decide exit status and folder."""
    guess, true = read_screen(predicted.strip("\n")), read_screen(truth.strip("\n"))
    return score_lines(
        guess.lines,
        true.lines,
        format_score=_format(guess),
        consistency=grade(_prompt_agreement(guess, true)),
    )


RUBRIC = Rubric(read_text(__package__, "judge_prompt.txt"), score_by_rules)


def _format(guess: Screen) -> int:
    if not guess.prompt:
        return 1
    return 3 if any(map(is_prompt_line, guess.lines)) else BEST


def _prompt_agreement(guess: Screen, true: Screen) -> float:
    return ((guess.status == true.status) + (guess.folder == true.folder)) / 2
