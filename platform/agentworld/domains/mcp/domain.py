"""MCP as a domain: a call of a tool as JSON in, the tool's result or the server's refusal out."""

import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache, partial
from importlib import resources

from pydantic import JsonValue

from agentworld.domains.base import (
    OUTPUT,
    SERVED,
    Action,
    ActionError,
    Axis,
    Call,
    Domain,
    Question,
    Start,
    TinyModel,
    TurnKind,
    stage_variants,
)
from agentworld.domains.calls import parse_calls, render_calls
from agentworld.domains.copy_warmup import copy_warmup
from agentworld.domains.mcp.comparison import canonical, mask_volatile
from agentworld.domains.mcp.observation import is_failure
from agentworld.domains.mcp.rubric import RUBRIC
from agentworld.domains.mcp.shop.tasks import NAME, solved_task
from agentworld.domains.mcp.shop.tools import shop_tools
from agentworld.domains.mcp.tags import KIND_TAGS, tags_of
from agentworld.domains.mcp.verifier import is_same, verify
from agentworld.domains.rubric import Rubric
from agentworld.domains.transcript import closes
from agentworld.domains.turn_filters import without_retries
from agentworld.domains.turn_kinds import kind_of_action
from agentworld.domains.words import has_unseen_word
from agentworld.records.sample import Pool
from agentworld.records.task import Task
from agentworld.records.tool import Tools
from agentworld.records.trajectory import PromptParts, Turn
from agentworld.rendering.tools import action_space

_PATTERN = r" ?\p{L}+(?:_\p{L}+)*| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
_SEPARATORS = (" ", '","', '":"', '":', ": ", "\n", '"},{"name":"', ", ")


class Mcp:
    """See `Domain`."""

    name = NAME
    version = "mcp-v1"
    rubric: Rubric = RUBRIC
    tiny = TinyModel(_PATTERN, partial(copy_warmup, _SEPARATORS))
    minimum_shares: Mapping[str, float] = {OUTPUT: 1 / 2}

    @property
    def tools(self) -> Tools:
        """Those of the shop, the domain's own server."""
        return shop_tools()

    def prompt(self, start: Start, variant: int = SERVED) -> PromptParts:
        """The episode's tools and its start; the domain's own tools a model learns from data."""
        return PromptParts(
            task_description=_tasks()[variant],
            action_space=action_space(start.tools),
            initial_state=start.text,
        )

    def variants(self, pool: Pool) -> Sequence[int]:
        """Ten wordings for SFT, one for CPT, one for everything else."""
        return stage_variants(pool)

    def parse_action(self, text: str) -> str:
        """The calls in one form; what is none stays as it is, for the server to refuse."""
        text = text.strip()
        if not text:
            raise ActionError("the policy wrote no call of a tool")
        return _one_form(text)

    def render_action(self, action: Action) -> str:
        """Calls are lines of JSON."""
        return render_calls(action.calls) if action.calls else action.text

    def normalise(self, observation: str) -> str:
        """JSON counts by its values, and not by how it is written."""
        return canonical(observation)

    def tags(self, start: Start, turns: Sequence[Turn]) -> Sequence[frozenset[str]]:
        """The names of the tools beside the common tags."""
        return tags_of(start.tools or self.tools, turns)

    def turn_kind(self, action: str, tags: Collection[str] = ()) -> TurnKind | None:
        """By the tools' annotations, which the tags have; else by the verbs in their names."""
        annotated = (kind for kind, tag in KIND_TAGS.items() if tag in tags)
        return next(annotated, None) or kind_of_action(action)

    def mask_volatile(self, observation: str) -> str:
        """Times, identifiers, and folders of one run."""
        return mask_volatile(observation)

    def has_unseen(self, text: str) -> bool:
        """Whether it holds a word that no training episode may use."""
        return has_unseen_word(text)

    def keep(self, turns: Sequence[Turn]) -> Sequence[bool]:
        """False for a failure that is tried again and fails alike."""
        return without_retries(turns, self.is_failure)

    def is_failure(self, observation: str) -> bool:
        """See `observation`."""
        return is_failure(observation)

    def thought(self, state: str, action: str) -> str:
        """The lines of the state that name what the action names; all where it names nothing."""
        words = {str(value) for call in parse_calls(action) for value in call.arguments.values()}
        lines = [line for line in state.splitlines() if words.intersection(_words_of(line))]
        return "\n".join(lines) or (state if not words else "") or "none"

    def verify(self, predicted: str, truth: str) -> Mapping[Axis, bool | None]:
        """See `verifier`."""
        return verify(predicted, truth)

    def outcome(self, task: Task, action: str, observation: str) -> bool | None:
        """Whether the closing call shows the rule's output; volatile parts do not count."""
        if not closes(task.success, _one_form(action)):
            return None
        return is_same(observation, task.success.output)

    def question(self, number: int) -> Question:
        """The first step of a held-out task."""
        solved = solved_task(number, held_out=True)
        return Question(Start(domain=NAME, text=solved.task.initial_state), solved.steps[0])


def _one_form(text: str) -> str:
    """Calls as the data has them: a line each, or one call over several lines."""
    try:
        return render_calls(parse_calls(text) or _call_over_lines(text)) or text
    except ActionError:
        return text


def _call_over_lines(text: str) -> tuple[Call, ...]:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    match value:
        case {"name": str(name), "arguments": dict(arguments)}:
            return (Call(name, arguments),)
    return ()


def _words_of(line: str) -> list[str]:
    return line.replace(":", " ").replace(",", " ").split()


@cache
def _tasks() -> list[str]:
    return resources.files(__package__).joinpath("prompts.txt").read_text().splitlines()


DOMAIN: Domain = Mcp()
