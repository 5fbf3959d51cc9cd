"""Any log of actions and observations: nothing is known of them but that they are text."""

from agentworld.domains.base import Domain
from agentworld.domains.defaults import BaseDomain
from agentworld.domains.package_text import read_prompt_templates, read_text
from agentworld.domains.rubric import Rubric, RubricScore, score_lines


def score_by_rules(predicted: str, truth: str) -> RubricScore:
    """The lines and words that agree.

    The format and the history are left out: the rules know no format that untrue lines lack.
    """
    return score_lines(predicted.splitlines(), truth.splitlines())


class Text(BaseDomain):
    """See `Domain`; it has the defaults of every domain."""

    name = "text"
    version = "text-v1"
    rubric = Rubric(read_text(__package__, "judge_prompt.txt"), score_by_rules)
    prompt_templates = read_prompt_templates(__package__)


DOMAIN: Domain = Text()
