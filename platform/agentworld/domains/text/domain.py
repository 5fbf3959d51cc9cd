"""The domain of any log: actions and observations are text, and nothing more is assumed."""

from agentworld.domains.base import Domain
from agentworld.domains.defaults import BaseDomain
from agentworld.domains.package_text import read_prompt_templates, read_text
from agentworld.domains.rubric import Rubric, RubricScore, score_lines


def score_by_rules(predicted: str, truth: str) -> RubricScore:
    """Scores the lines and words that agree.

    `format` and `consistency` have no score: any text has the format, and the rules do not see the
    history.
    """
    return score_lines(predicted.splitlines(), truth.splitlines())


class Text(BaseDomain):
    """See `Domain`; every method is the default."""

    name = "text"
    version = "text-v1"
    rubric = Rubric(read_text(__package__, "judge_prompt.txt"), score_by_rules)
    prompt_templates = read_prompt_templates(__package__)


DOMAIN: Domain = Text()
