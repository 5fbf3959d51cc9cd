"""The domain of MCP: an action is a call of a tool, an observation its result or a refusal."""

import re
from collections.abc import Mapping, Sequence

from agentworld.domains.base import (
    OUTPUT,
    ActionError,
    Axis,
    Domain,
    Start,
    TinyModel,
)
from agentworld.domains.calls import parse_call, parse_calls, render_calls
from agentworld.domains.mcp.comparison import canonical, is_same, mask_volatile
from agentworld.domains.mcp.observation import is_failure
from agentworld.domains.mcp.rubric import RUBRIC
from agentworld.domains.mcp.shop.tasks import NAME, solved_task
from agentworld.domains.mcp.shop.tools import shop_tools
from agentworld.domains.mcp.shop.warm_up import warm_up
from agentworld.domains.mcp.tags import tags_of
from agentworld.domains.mcp.verifier import verify
from agentworld.domains.package_text import read_prompt_templates
from agentworld.domains.task_defaults import BaseTaskDomain
from agentworld.domains.transcript import closes
from agentworld.records.task import Task
from agentworld.records.trajectory import Turn

_WORD = re.compile(r"\w+")
# A word is the same tokens after a quote and after a space, so that a new model can copy it.
_PATTERN = r"\p{L}+(?:_\p{L}+)*|\p{N}|[^\s\p{L}\p{N}]+ ?|\s+"


class Mcp(BaseTaskDomain):
    """See `Domain`."""

    name = NAME
    version = "mcp-v1"
    rubric = RUBRIC
    axes: Sequence[Axis] = ("errors", "consistency")
    solved_task = staticmethod(solved_task)
    prompt_templates = read_prompt_templates(__package__)
    tools = shop_tools()
    """The tools of the shop, the domain's own server. No prompt lists them: a model learns them."""
    tiny = TinyModel(_PATTERN, warm_up)
    minimum_shares = {OUTPUT: 1 / 2}

    def parse_action(self, text: str) -> str:
        """Calls in canonical form; other text stays unchanged, and the server refuses it."""
        text = text.strip()
        if not text:
            raise ActionError("the policy wrote no call of a tool")
        return _one_form(text)

    def normalise(self, observation: str) -> str:
        """JSON in one form, so that only its values are compared."""
        return canonical(observation)

    def tags(self, start: Start, turns: Sequence[Turn]) -> Sequence[frozenset[str]]:
        """The common tags and the names of the called tools; see `tags`."""
        return tags_of(start.tools or self.tools, turns)

    def mask_volatile(self, observation: str) -> str:
        """Masks times, identifiers, and temporary folders."""
        return mask_volatile(observation)

    def is_failure(self, observation: str) -> bool:
        """See `observation`."""
        return is_failure(observation)

    def thought(self, state: str, action: str) -> str:
        """The lines of the state that name an argument of the action; without arguments, all."""
        words = {str(value) for call in parse_calls(action) for value in call.arguments.values()}
        lines = [line for line in state.splitlines() if words.intersection(_WORD.findall(line))]
        return "\n".join(lines) or (state if not words else "") or "none"

    def verify(self, predicted: str, truth: str) -> Mapping[Axis, bool | None]:
        """See `verifier`."""
        return verify(predicted, truth)

    def outcome(self, task: Task, action: str, observation: str) -> bool | None:
        """Whether the closing call shows the rule's output, apart from volatile parts."""
        if not closes(task.success, _one_form(action)):
            return None
        return is_same(observation, task.success.output)


def _one_form(text: str) -> str:
    """Calls in canonical form; accepts a line for each call, or one call over several lines."""
    try:
        return render_calls(parse_calls(text) or [parse_call(text)])
    except (ActionError, ValueError, RecursionError):
        return text


DOMAIN: Domain = Mcp()
