"""The rules' answers to the rubric for a shell: lines of output, then a prompt line."""

from importlib import resources

from agentworld.domains.rubric import (
    BEST,
    Rubric,
    RubricScore,
    grade,
    line_agreement,
    word_coverage,
    word_precision,
)
from agentworld.domains.shell.grammar import Screen, is_prompt_line, read_screen


def score_by_rules(predicted: str, truth: str) -> RubricScore:
    """`consistency` is the prompt line: exit status and folder follow from what came before."""
    guess, true = read_screen(predicted.strip("\n")), read_screen(truth.strip("\n"))
    return RubricScore(
        format=_format(guess),
        factuality=grade(line_agreement(guess.lines, true.lines)),
        consistency=grade(_prompt_agreement(guess, true)),
        realism=grade(word_precision(guess.lines, true.lines)),
        quality=grade(word_coverage(guess.lines, true.lines)),
    )


RUBRIC = Rubric(
    judge_prompt=resources.files(__package__).joinpath("judge_prompt.txt").read_text(),
    score_by_rules=score_by_rules,
)


def _format(guess: Screen) -> int:
    if not guess.prompt:
        return 1
    return 3 if any(map(is_prompt_line, guess.lines)) else BEST


def _prompt_agreement(guess: Screen, true: Screen) -> float:
    return ((guess.status == true.status) + (guess.folder == true.folder)) / 2
