"""The defaults of a domain, which hold for any world whose observations are text.

A domain inherits them, states its name, version, rubric and prompt templates, and overrides what
its world does otherwise: prompts of another form, an action's form, tags, the words kept from
training, the rule verifier. `Domain` in `base` defines each method.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from agentworld.domains.base import (
    OUTPUT,
    SERVED,
    Action,
    ActionError,
    Axis,
    Question,
    Start,
    TinyModel,
    TurnKind,
    stage_variants,
)
from agentworld.domains.calls import render_calls
from agentworld.domains.failure import reports_failure
from agentworld.domains.rubric import Rubric
from agentworld.domains.transcript import closes
from agentworld.domains.turn_filters import without_retries
from agentworld.domains.turn_kinds import kind_of_turn
from agentworld.domains.volatile import mask_times
from agentworld.records.sample import Pool
from agentworld.records.task import Task
from agentworld.records.tool import Tools
from agentworld.records.trajectory import PromptParts, Turn
from agentworld.rendering.tools import action_space

_PATTERN = r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
_QUESTIONS = ("help", "status", "list", "show")


def _no_texts(_num_texts: int, _seed: int) -> Iterator[str]:
    return iter(())


class BaseDomain:
    """See the module."""

    name: str
    version: str
    rubric: Rubric
    axes: Sequence[Axis] = ()
    prompt_templates: Sequence[PromptParts]
    """The parts of a system prompt that all episodes share, one for each prompt variant."""
    tiny = TinyModel(_PATTERN, _no_texts)
    """Words, digits, punctuation and white space; a new model gets no texts to copy."""
    tools: Tools = ()
    minimum_shares: Mapping[str, float] = {}

    def prompt(self, start: Start, variant: int = SERVED) -> PromptParts:
        """A template with the episode's tools, unless it states an action space, and its start."""
        template = self.prompt_templates[variant]
        space = template.action_space or action_space(start.tools)
        return template.model_copy(update={"action_space": space, "initial_state": start.text})

    def variants(self, pool: Pool) -> Sequence[int]:
        """Ten wordings for SFT, one for CPT, one for everything else."""
        return stage_variants(pool)

    def parse_action(self, text: str) -> str:
        """All that the policy wrote."""
        if not text.strip():
            raise ActionError("the policy wrote no action")
        return text.strip()

    def render_action(self, action: Action) -> str:
        """Calls are lines of JSON."""
        return render_calls(action.calls) if action.calls else action.text

    def normalise(self, observation: str) -> str:
        """The observation itself: every character counts."""
        return observation

    def tags(self, _start: Start, turns: Sequence[Turn]) -> Sequence[frozenset[str]]:
        """`OUTPUT` for a turn that shows anything but white space."""
        return [frozenset({OUTPUT} if turn.observation.strip() else ()) for turn in turns]

    def turn_kind(self, action: str, tags: Collection[str] = ()) -> TurnKind | None:
        """By a tag that states it, else by the verbs of the action's tools or programs."""
        return kind_of_turn(action, tags)

    def mask_volatile(self, observation: str) -> str:
        """Masks dates with a time of day."""
        return mask_times(observation)

    def has_unseen(self, _text: str) -> bool:
        """False: whole episodes are held out, and no words."""
        return False

    def keep(self, turns: Sequence[Turn]) -> Sequence[bool]:
        """False for a failing action that is repeated and fails with the same observation."""
        return without_retries(turns, self.is_failure)

    def is_failure(self, observation: str) -> bool:
        """By the words that most programs use; see `failure`."""
        return reports_failure(observation)

    def thought(self, state: str, _action: str) -> str:
        """The whole recorded state, or `none`."""
        return state or "none"

    def verify(self, _predicted: str, _truth: str) -> Mapping[Axis, bool | None]:
        """No verdicts: there are no rules."""
        return {}

    def outcome(self, task: Task, action: str, observation: str) -> bool | None:
        """Whether the closing action shows exactly the rule's output."""
        return observation == task.success.output if closes(task.success, action) else None

    def question(self, number: int) -> Question:
        """A word that most worlds answer with something."""
        return Question(Start(domain=self.name), _QUESTIONS[number % len(_QUESTIONS)])
