"""The scores of the rubric for MCP by rules; an observation is JSON, text, or an error."""

import json
from contextlib import suppress

from agentworld.domains.mcp.comparison import canonical, mask_volatile
from agentworld.domains.mcp.observation import is_failure
from agentworld.domains.package_text import read_text
from agentworld.domains.rubric import BEST, Rubric, RubricScore, score_lines


def score_by_rules(predicted: str, truth: str) -> RubricScore:
    """Compares lines: a value of JSON with its key, or a line of text.

    `consistency` has no score, because the rules do not see the history.
    """
    has_form = _form(predicted) == _form(truth)
    return score_lines(_lines(predicted), _lines(truth), format_score=BEST if has_form else 1)


RUBRIC = Rubric(read_text(__package__, "judge_prompt.txt"), score_by_rules)


def _form(observation: str) -> str:
    if is_failure(observation):
        return "error"
    return "JSON" if canonical(observation).startswith(("{", "[")) else "text"


def _lines(observation: str) -> list[str]:
    text = mask_volatile(canonical(observation))
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=0, ensure_ascii=False)
    return [line.rstrip(",") for line in text.splitlines()]
