"""Any log of actions and observations: nothing is known of them but that they are text."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources

from agentworld.domains.base import (
    OUTPUT,
    SERVED,
    Action,
    ActionError,
    Axis,
    Domain,
    Question,
    Start,
    TinyModel,
    TurnKind,
    stage_variants,
)
from agentworld.domains.calls import render_calls
from agentworld.domains.rubric import (
    Rubric,
    RubricScore,
    grade,
    line_agreement,
    word_coverage,
    word_precision,
)
from agentworld.domains.text.failure import reports_failure
from agentworld.domains.transcript import closes
from agentworld.domains.turn_filters import without_retries
from agentworld.domains.turn_kinds import kind_of_action
from agentworld.domains.volatile import mask_times
from agentworld.records.sample import Pool
from agentworld.records.task import Task
from agentworld.records.tool import Tools
from agentworld.records.trajectory import PromptParts, Turn
from agentworld.rendering.tools import action_space

NAME = "text"
_PATTERN = r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
_QUESTIONS = ("help", "status", "list", "show")


def score_by_rules(predicted: str, truth: str) -> RubricScore:
    """Lines and words that agree.

    The form and the history are left out: of any text no form is known that untrue lines could not
    have.
    """
    predicted_lines, truth_lines = predicted.splitlines(), truth.splitlines()
    return RubricScore(
        format=0,
        factuality=grade(line_agreement(predicted_lines, truth_lines)),
        consistency=0,
        realism=grade(word_precision(predicted_lines, truth_lines)),
        quality=grade(word_coverage(predicted_lines, truth_lines)),
    )


class Text:
    """See `Domain`."""

    name = NAME
    version = "text-v1"
    rubric = Rubric(
        judge_prompt=resources.files(__package__).joinpath("judge_prompt.txt").read_text(),
        score_by_rules=score_by_rules,
    )
    tools: Tools = ()
    minimum_shares: Mapping[str, float] = {}

    @property
    def tiny(self) -> TinyModel:
        """Words, digits, punctuation and white space; nothing to warm up with."""
        return TinyModel(_PATTERN, _no_texts)

    def prompt(self, start: Start, variant: int = SERVED) -> PromptParts:
        """What the log says of the start, and its tools."""
        return PromptParts(
            task_description=_tasks()[variant],
            action_space=action_space(start.tools),
            initial_state=start.text,
        )

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
        """Every byte counts."""
        return observation

    def tags(self, start: Start, turns: Sequence[Turn]) -> Sequence[frozenset[str]]:  # noqa: ARG002
        """Whether anything is shown."""
        return [frozenset({OUTPUT} if turn.observation.strip() else ()) for turn in turns]

    def turn_kind(self, action: str, tags: Collection[str] = ()) -> TurnKind | None:  # noqa: ARG002
        """By the verbs in the names of the tools that it calls, or by its first word."""
        return kind_of_action(action)

    def mask_volatile(self, observation: str) -> str:
        """Dates with a time of day."""
        return mask_times(observation)

    def has_unseen(self, text: str) -> bool:  # noqa: ARG002  nothing is kept from training
        """Never: what is held out of a log is whole episodes."""
        return False

    def keep(self, turns: Sequence[Turn]) -> Sequence[bool]:
        """False for a failure that is tried again and fails alike."""
        return without_retries(turns, self.is_failure)

    def is_failure(self, observation: str) -> bool:
        """See `failure`."""
        return reports_failure(observation)

    def thought(self, state: str, action: str) -> str:  # noqa: ARG002  nothing is known of it
        """The state as it was recorded."""
        return state or "none"

    def verify(self, predicted: str, truth: str) -> Mapping[Axis, bool | None]:  # noqa: ARG002
        """No rule is known."""
        return {}

    def outcome(self, task: Task, action: str, observation: str) -> bool | None:
        """The closing action shows exactly the rule's output."""
        return observation == task.success.output if closes(task.success, action) else None

    def question(self, number: int) -> Question:
        """Words that most worlds answer with something."""
        return Question(Start(domain=NAME), _QUESTIONS[number % len(_QUESTIONS)])


@cache
def _tasks() -> list[str]:
    return resources.files(__package__).joinpath("prompts.txt").read_text().splitlines()


def _no_texts(num_texts: int, seed: int) -> Iterator[str]:  # noqa: ARG001  a log has no words to list
    return iter(())


DOMAIN: Domain = Text()
