"""The rules' answers to the rubric for MCP: a result is JSON or text, and an error is one."""

import json
from contextlib import suppress
from importlib import resources

from agentworld.domains.mcp.comparison import canonical, mask_volatile
from agentworld.domains.mcp.observation import is_failure
from agentworld.domains.rubric import (
    BEST,
    Rubric,
    RubricScore,
    grade,
    line_agreement,
    word_coverage,
    word_precision,
)


def score_by_rules(predicted: str, truth: str) -> RubricScore:
    """A line is a value of JSON with its key, or a line of text.

    The history is left out: the rules do not see it.
    """
    guess_lines, true_lines = _lines(predicted), _lines(truth)
    return RubricScore(
        format=BEST if _form(predicted) == _form(truth) else 1,
        factuality=grade(line_agreement(guess_lines, true_lines)),
        consistency=0,
        realism=grade(word_precision(guess_lines, true_lines)),
        quality=grade(word_coverage(guess_lines, true_lines)),
    )


RUBRIC = Rubric(
    judge_prompt=resources.files(__package__).joinpath("judge_prompt.txt").read_text(),
    score_by_rules=score_by_rules,
)


def _form(observation: str) -> str:
    if is_failure(observation):
        return "error"
    return "JSON" if canonical(observation).startswith(("{", "[")) else "text"


def _lines(observation: str) -> list[str]:
    text = mask_volatile(canonical(observation))
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=0, ensure_ascii=False)
    return [line.rstrip(",") for line in text.splitlines()]
