"""One interaction with one simulator: an opening, and append-only steps.

Actions and observations are arbitrary text: NUL, lone surrogates, a megabyte. Texts and openings
are stored as bytes and identified by a digest; heads chain digests, so the chain still verifies
after retention erased a text.
"""

import secrets
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, Self

import rfc8785
from pydantic import Field, model_validator

from agentworld.errors import Conflict
from agentworld.records.base import Digest, Record, canonical_json, digest_bytes, digest_json
from agentworld.records.task import Task
from agentworld.records.tool import Tools
from agentworld.records.usage import Usage

CloseReason = Literal["done", "limit", "closed", "expired"]


class Source(Record):
    """The recorded episode that another one forks or replays."""

    episode: str
    step: int = Field(ge=0)
    """The number of its first steps."""


class Exchange(Record):
    """An action and its observation."""

    action: str
    observation: str


class EpisodeOpening(Record):
    """The start of an episode: a task, or a start of its own without reward."""

    run: str
    task: Task | None = None
    """Its start and its turn limit take precedence over the two fields below."""
    domain: str = ""
    """The domain, if the simulator has several; a task's own takes precedence."""
    initial_state: str = ""
    turn_limit: int = Field(32, gt=0)
    simulation_instruction: str = ""
    """Replaces the simulator's default control text."""
    seed: int | None = Field(None, ge=0, lt=2**53)
    """Supported by simulators whose policy is `seeded`; others refuse it."""
    tools: Tools = ()
    """The tools that an agent may call; a part of the simulator's prompt."""
    fork: Source | None = None
    """The episode begins with a copy of these steps."""
    replay: Source | None = None
    """The episode is answered from the record, without the engine."""
    prior_turns: tuple[Exchange, ...] = ()
    """Earlier turns, as claimed by the caller; the simulator did not produce them."""
    accelerators: tuple[str, ...] = ()
    """The engine's accelerators when the episode began, of each replica if they differ. Only the
    service sets it."""

    @model_validator(mode="after")
    def _has_one_past(self) -> Self:
        if self.fork and self.replay:
            raise ValueError("an episode has both a fork and a replay; give only one of them")
        return self

    @property
    def text(self) -> str:
        """Canonical JSON without defaults, as stored; so a new field changes no digest."""
        return canonical_json(self.model_dump(mode="json", exclude_defaults=True)).decode()

    @property
    def start(self) -> str:
        """The initial state for the simulator's prompt."""
        return self.task.initial_state if self.task else self.initial_state

    @property
    def limit(self) -> int:
        """The number of the last step that is answered."""
        return self.task.turn_limit if self.task else self.turn_limit

    @property
    def control(self) -> Digest:
        """The digest of the instruction that controls the world (Qwen-AgentWorld 3.5)."""
        return digest_bytes(self.simulation_instruction.encode())


class Confidence(NamedTuple):
    """The simulator's confidence in an observation."""

    mean_logprob: float | None = None
    """Of the response's tokens; null if the engine does not report it."""
    agreement: float | None = None
    """The share of further samples that agree; null without further samples."""
    low: bool = False
    """Below a threshold of the manifest, or unknown although there is one."""


class EpisodeStep(NamedTuple):
    """One answered step, as stored. Not a pydantic record, because its texts may be non-Unicode."""

    episode: str
    number: int
    """1 for the first; clients number steps, so that a retried step is taken once."""
    action: str | None
    """Null once erased."""
    observation: str | None
    action_digest: Digest
    observation_digest: Digest
    reward: float | None = None
    """Null without a task, and before a task is closed."""
    done: bool = False
    truncated: bool = False
    """Done because of the turn limit."""
    confidence: Confidence = Confidence()
    usage: Usage = Usage()
    """Affects no observation and is in no head."""
    head: Digest = ""
    """Covers the previous head and this step, so that no earlier step can be changed."""

    @property
    def ending(self) -> CloseReason | None:
        """The reason why no step follows this one; null if one may."""
        if not self.done:
            return None
        return "limit" if self.truncated else "done"

    def link(self, before: Digest) -> "EpisodeStep":
        """This step with the head that follows `before`."""
        return EpisodeStep(*self[:-1], self.head_after(before))

    def head_after(self, before: Digest) -> Digest:
        """The head that follows `before`."""
        outcome = (self.reward, self.done, self.truncated, *self.confidence)
        return next_head(before, self.number, self.action_digest, self.observation_digest, outcome)


class Episode(NamedTuple):
    """An episode in the ledger."""

    id: str
    simulator: Digest
    run: str
    opening: EpisodeOpening | None
    """Null once erased."""
    opening_digest: Digest
    num_copied: int = 0
    """The steps that a fork copied: the agent of another episode took them."""
    steps: tuple[EpisodeStep, ...] = ()
    closed: CloseReason | None = None

    @classmethod
    def new(cls, name: str, simulator: Digest, opening: EpisodeOpening) -> "Episode":
        """A new episode without steps."""
        copied = opening.fork.step if opening.fork else 0
        return cls(name, simulator, opening.run, opening, text_digest(opening.text), copied)

    @property
    def opened_with(self) -> EpisodeOpening:
        """Its opening; raises Conflict if retention erased it."""
        if self.opening is None:
            raise Conflict(f"the opening of episode {self.id} was erased by retention")
        return self.opening

    @property
    def head(self) -> Digest:
        """The digest of all steps so far."""
        return self.steps[-1].head if self.steps else self.first_head

    @property
    def first_head(self) -> Digest:
        """The digest of the episode's start."""
        return first_head(self.id, self.simulator, self.run, self.num_copied, self.opening_digest)

    @property
    def intact(self) -> bool:
        """Whether every head follows from the previous one, and every text matches its digest."""
        return self.has_whole_opening and self.follows(self.first_head)

    def follows(self, head: Digest) -> bool:
        """Whether its steps are chained to this first head, with matching texts."""
        for number, step in enumerate(self.steps, 1):
            if step.number != number or not _is_whole(step) or step.head_after(head) != step.head:
                return False
            head = step.head
        return True

    @property
    def has_whole_opening(self) -> bool:
        """Whether its opening matches the start's digest, or is erased."""
        if self.opening is None:
            return True
        return Episode.new(self.id, self.simulator, self.opening)[:6] == self[:6]


class ResetResult(Record):
    """The response to an opened episode; without an observation, because no step was taken yet."""

    simulator: Digest
    run: str
    episode: str
    step: int = 0
    """The number of steps so far: those of a fork."""
    instruction: str | None = None
    """The task's instruction for the agent; null without a task."""
    control: Digest
    """The digest of the instruction that controls the world."""


class StepResult(NamedTuple):
    """The response to an agent's step; every response names the `simulator`."""

    simulator: Digest
    run: str
    episode: str
    step: int
    """The number of steps so far."""
    observation: str
    reward: float | None = None
    """Null without a task, and before a task is closed."""
    done: bool = False
    truncated: bool = False
    """Done because of the turn limit."""
    mean_logprob: float | None = None
    agreement: float | None = None
    low_confidence: bool = False
    """Trainers should mask this step."""


def new_name() -> str:
    """A new episode's name: a UUID of version 7 (RFC 9562), in hexadecimal.

    Names created at the same time are adjacent, so that the steps of concurrent episodes share
    pages of the ledger's index. Nothing depends on their order.
    """
    milliseconds, random_bits = time.time_ns() // 1_000_000, secrets.randbits(74)
    high, low = divmod(random_bits, 2**62)
    return f"{milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low:032x}"


def first_head(
    episode: str, simulator: Digest, run: str, num_copied: int, opening: Digest
) -> Digest:
    """The digest of an episode's start: sha256 over an array of these (RFC 8785)."""
    return digest_json([episode, simulator, run, num_copied, opening])


def next_head(
    before: Digest,
    number: int,
    action: Digest,
    observation: Digest,
    outcome: tuple[float | None, ...],
) -> Digest:
    """The head of a step: sha256 over five lines, the last one canonical JSON.

    They are the previous head, the number, the digests of action and observation, and an array of
    reward, done, truncated and the confidence's fields (RFC 8785).
    """
    lines = before, str(number), action, observation, _encode_outcome(outcome)
    return digest_bytes("\n".join(lines).encode())


def text_bytes(text: str) -> bytes:
    """UTF-8, with lone surrogates encoded like other characters."""
    return text.encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """The inverse of `text_bytes`."""
    return data.decode("utf-8", "surrogatepass")


def text_digest(text: str) -> Digest:
    """The digest of a text's bytes."""
    return digest_bytes(text_bytes(text))


def heads_digest(steps: Sequence[EpisodeStep]) -> Digest:
    """The digest of the heads of several steps in their order."""
    return digest_bytes("\n".join(step.head for step in steps).encode())


@lru_cache(1024)
def _encode_outcome(outcome: tuple[float | None, ...]) -> str:
    """Cached, because most steps have one of few outcomes."""
    return rfc8785.dumps(list(outcome)).decode()


def _is_whole(step: EpisodeStep) -> bool:
    action, observation = step.action, step.observation
    return (action is None or text_digest(action) == step.action_digest) and (
        observation is None or text_digest(observation) == step.observation_digest
    )
