"""What every domain offers to data preparation, training, evaluation, pinning and serving.

Pure: neither this module nor a module that `domain_of` loads opens an environment; `domains.live`
does. Another package adds a domain by an entry point of the group `agentworld.domains`.
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
"""What an action does: it reads the state of its world, changes it, or computes a result."""

SERVED = 0
"""The prompt variant of RL and serving (Qwen-AgentWorld section 3.1.2)."""

OUTPUT = "output"
"""Tag of a turn that shows something worth predicting; RL draws its targets from these."""
HISTORY = "history"
"""Tag of a turn that shows what an earlier turn of its episode changed."""
UNSEEN = "unseen"
"""Tag of a turn with content that is reserved for held-out episodes."""


class Start(Record):
    """What an episode begins with."""

    domain: str
    text: str = ""
    """The initial state as text of the world's prompt; empty if the prompt has none."""
    tools: Tools = ()


class Call(NamedTuple):
    """A call of a tool."""

    name: str
    arguments: Mapping[str, JsonValue]


class Action(NamedTuple):
    """What an agent sends in one step: a text, or calls of tools."""

    text: str
    calls: tuple[Call, ...] = ()


class Question(NamedTuple):
    """A start and an action that is possible in it. Pinning and serving probe an engine with it."""

    start: Start
    action: str


class TinyModel(NamedTuple):
    """What a model with random weights needs; a model with a pre-trained base does not."""

    pattern: str
    """A regular expression for one piece of text; no token crosses the end of a piece."""
    warm_up: Callable[[int, int], Iterator[str]]
    """From a number of texts and a seed, texts from which the model learns to copy first."""


class ActionError(InputError):
    """A policy's text contains no action of its domain."""


class Domain(Protocol):
    """One kind of world. Its methods are pure: equal arguments, equal results."""

    @property
    def name(self) -> str:
        """The domain's name in trajectories and manifests."""

    @property
    def version(self) -> str:
        """Changes if the domain renders, parses or scores otherwise; manifests pin it."""

    @property
    def rubric(self) -> Rubric:
        """How an observation is scored from 1 to 5: by a judge, or by rules."""

    @property
    def axes(self) -> Sequence[Axis]:
        """The axes on which `verify` has verdicts; none if the domain has no rules."""

    @property
    def tiny(self) -> TinyModel:
        """For models with random weights."""

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
        """Extracts the action from a policy's text; raises ActionError if there is none."""

    def render_action(self, action: Action) -> str:
        """The text that the world reads; raises ActionError for calls that have no such text."""

    def normalise(self, observation: str) -> str:
        """The form in which two observations are compared; training and serving do not use it."""

    def tags(self, start: Start, turns: Sequence[Turn]) -> Sequence[frozenset[str]]:
        """The tags of each turn: those above, and the domain's own."""

    def turn_kind(self, action: str, tags: Collection[str] = ()) -> TurnKind | None:
        """What an action does to its world; null if neither its words nor its tags tell it."""

    def mask_volatile(self, observation: str) -> str:
        """Replaces what cannot be predicted, such as the time of day, by fixed words."""

    def has_unseen(self, text: str) -> bool:
        """Whether a text has content that is reserved for held-out episodes."""

    def keep(self, turns: Sequence[Turn]) -> Sequence[bool]:
        """For each turn, whether a data set keeps it; it drops repetitions without effect."""

    def is_failure(self, observation: str) -> bool:
        """Whether an observation says that its action failed."""

    def thought(self, state: str, action: str) -> str:
        """The world's thought before its answer, made from the true state before the action."""

    def verify(self, predicted: str, truth: str) -> Mapping[Axis, bool | None]:
        """Verdicts of the domain's rules; an axis without a verdict is null or left out."""

    def outcome(self, task: Task, action: str, observation: str) -> bool | None:
        """Whether the turn that ends a task succeeded; null if the turn does not end it.

        The same rule rewards simulated episodes and evaluates live ones.
        """

    def question(self, number: int) -> Question:
        """The probe question of this number, always the same."""


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
    """The prompt variants, of twelve, that a pool draws from (Qwen-AgentWorld section 3.1.2)."""
    return {"cpt": (1,), "sft": tuple(range(2, 12))}.get(pool, (SERVED,))


def domain_of(name: str) -> Domain:
    """The domain of this name, loaded on first use; raises InputError for an unknown name."""
    return _KINDS.find(name)


def domain_names() -> list[str]:
    """The names of all installed domains, in alphabetical order."""
    return _KINDS.names


def verdict_of(domain: Domain, predicted: str, truth: str) -> bool | None:
    """Whether all verdicts of the domain's rules are true; null if there is no verdict."""
    verdicts = [
        verdict for verdict in domain.verify(predicted, truth).values() if verdict is not None
    ]
    return all(verdicts) if verdicts else None


def is_match(domain: Domain, predicted: str, truth: str) -> bool:
    """Whether the normalised prediction equals the normalised true observation."""
    return domain.normalise(predicted) == domain.normalise(truth)


def domain_modules(names: Iterable[str]) -> list[str]:
    """The modules of these domains; the code digest of a step covers them."""
    return [_KINDS.module_of(name) for name in names]
