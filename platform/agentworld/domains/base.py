"""What every domain offers to data preparation, training, evaluation, pinning and serving.

Pure: nothing here, and nothing that `domain_of` loads, opens an environment. `domains.live` does.
A domain of a package of its own is an entry point of the group `agentworld.domains`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from pydantic import JsonValue

from agentworld.domains.rubric import Rubric
from agentworld.errors import InputError
from agentworld.kinds import Kinds
from agentworld.records.base import Record
from agentworld.records.sample import Pool
from agentworld.records.task import Task
from agentworld.records.tool import Tools
from agentworld.records.trajectory import PromptParts, Turn

Axis = Literal["controllability", "errors", "consistency"]
"""What a rule can verify of a turn (Qwen-AgentWorld appendix C)."""

TurnKind = Literal["read", "write", "computation"]
"""What an action does to its world: it shows what is there, changes it, or works something out."""

SERVED = 0
"""The prompt variant of RL and serving (Qwen-AgentWorld section 3.1.2)."""

OUTPUT = "output"
"""Tag of a turn that shows something worth predicting; RL draws its targets from these."""
HISTORY = "history"
"""Tag of a turn that shows what an earlier turn of its episode changed."""
UNSEEN = "unseen"
"""Tag of a turn that holds what no training episode may hold."""


class Start(Record):
    """What an episode begins with."""

    domain: str
    text: str = ""
    """The initial state as the world's prompt says it; empty where there is nothing to say."""
    tools: Tools = ()


class Call(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: Mapping[str, JsonValue]


class Action(NamedTuple):
    """What an agent does: a text, or calls of tools."""

    text: str
    calls: tuple[Call, ...] = ()


class Question(NamedTuple):
    """A start, and an action that can be taken in it: to ask an engine before an agent does."""

    start: Start
    action: str


class TinyModel(NamedTuple):
    """What a model that starts from nothing needs; one with a pre-trained base needs neither."""

    pattern: str
    """A regular expression for one piece of text that a tokenizer neither cuts nor joins."""
    warm_up: Callable[[int, int], Iterator[str]]
    """So many texts of a seed, from which it learns to copy before it sees an episode."""


class ActionError(InputError):
    """A policy's text holds no action of its domain."""


class Domain(Protocol):
    """One kind of world. Its methods are pure: equal arguments, equal results."""

    @property
    def name(self) -> str:
        """As trajectories and manifests have it."""

    @property
    def version(self) -> str:
        """Of all that it renders, parses and scores; it is pinned in a simulator's manifest."""

    @property
    def rubric(self) -> Rubric:
        """How an observation is scored from 1 to 5: by a judge, or by rules."""

    @property
    def tiny(self) -> TinyModel:
        """For models that start from nothing."""

    @property
    def tools(self) -> Tools:
        """What an agent may call in an episode that names no tools."""

    @property
    def minimum_shares(self) -> Mapping[str, float]:
        """By tag, the share of held-out turns that a useful data set has."""

    def prompt(self, start: Start, variant: int = SERVED) -> PromptParts:
        """The parts of an episode's system prompt."""

    def variants(self, pool: Pool) -> Sequence[int]:
        """The prompt variants that a pool draws from."""

    def parse_action(self, text: str) -> str:
        """The action in what a policy wrote; raises ActionError where there is none."""

    def render_action(self, action: Action) -> str:
        """The action as the world reads it; raises ActionError for calls that cannot be."""

    def normalise(self, observation: str) -> str:
        """For comparing two observations, and never for training or serving."""

    def tags(self, start: Start, turns: Sequence[Turn]) -> Sequence[frozenset[str]]:
        """For each turn what it is: the tags above, and the domain's own."""

    def turn_kind(self, action: str, tags: Collection[str] = ()) -> TurnKind | None:
        """What an action does to its world; null where neither its words nor its tags say it."""

    def mask_volatile(self, observation: str) -> str:
        """For comparing: what no predictor can know, as the time of day, by a fixed word."""

    def has_unseen(self, text: str) -> bool:
        """Whether a text holds what no training episode may hold."""

    def keep(self, turns: Sequence[Turn]) -> Sequence[bool]:
        """For each turn whether a data set keeps it: a repetition without effect it need not."""

    def is_failure(self, observation: str) -> bool:
        """Whether an observation says that its action failed."""

    def thought(self, state: str, action: str) -> str:
        """What a world thinks before it answers, given the true state before the action."""

    def verify(self, predicted: str, truth: str) -> Mapping[Axis, bool | None]:
        """Verdicts of the domain's rules; null or left out where a rule has nothing to say."""

    def outcome(self, task: Task, action: str, observation: str) -> bool | None:
        """Whether a turn ends its task well; null where it does not end it.

        The same rule rewards a simulated episode and reports a live one.
        """

    def question(self, number: int) -> Question:
        """One of the questions with which an engine is probed."""


_KINDS = Kinds[Domain](
    group="agentworld.domains",
    noun="domain",
    attribute="DOMAIN",
    modules={
        "mcp": "agentworld.domains.mcp.domain",
        "screen": "agentworld.domains.screen.domain",
        "shell": "agentworld.domains.shell.domain",
        "terminal": "agentworld.domains.terminal.domain",
        "text": "agentworld.domains.text.domain",
    },
)


def stage_variants(pool: Pool) -> tuple[int, ...]:
    """Of twelve variants, those that a pool draws from (Qwen-AgentWorld section 3.1.2)."""
    return {"cpt": (1,), "sft": tuple(range(2, 12))}.get(pool, (SERVED,))


def domain_of(name: str) -> Domain:
    """The domain of this name, loaded when it is named first; raises InputError for no domain."""
    return _KINDS.find(name)


def domain_names() -> list[str]:
    """All that are installed, in alphabetical order."""
    return _KINDS.names


def verdict_of(domain: Domain, predicted: str, truth: str) -> bool | None:
    """Whether every rule of the domain agrees; null where none has anything to say."""
    verdicts = [
        verdict for verdict in domain.verify(predicted, truth).values() if verdict is not None
    ]
    return all(verdicts) if verdicts else None


def is_match(domain: Domain, predicted: str, truth: str) -> bool:
    """Whether a prediction is the true observation to every character that the domain compares."""
    return domain.normalise(predicted) == domain.normalise(truth)


def domain_modules(names: Iterable[str]) -> list[str]:
    """The modules of these domains, for whoever digests code."""
    return [_KINDS.module_of(name) for name in names]
