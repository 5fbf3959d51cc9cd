"""One interaction with one simulator: an opening, and steps that are only added.

What an agent and a world say is text of any kind: NUL, lone surrogates, a megabyte. It is kept
as bytes and named by a digest, and so is what an episode was opened with; heads chain digests, so
that a text can be erased by retention and the chain still verifies.
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
    """The recorded episode that another one starts from, or repeats."""

    episode: str
    step: int = Field(ge=0)
    """So many of its first steps."""


class Exchange(Record):
    """An action and what was shown for it."""

    action: str
    observation: str


class EpisodeOpening(Record):
    """What an episode starts with: a task, or a start of its own without reward."""

    run: str
    task: Task | None = None
    """Its start and its turn limit hold, whatever the two fields below say."""
    domain: str = ""
    """The kind of world, where the simulator has several; a task's own holds."""
    initial_state: str = ""
    turn_limit: int = Field(32, gt=0)
    simulation_instruction: str = ""
    """In place of the simulator's own control text."""
    seed: int | None = Field(None, ge=0, lt=2**53)
    """Taken by a simulator whose policy is `seeded`; any other refuses it."""
    tools: Tools = ()
    """What an agent may call; a part of what the world reads."""
    fork: Source | None = None
    """Begins as a copy of these steps."""
    replay: Source | None = None
    """Answers from the record; the engine is not asked."""
    prior_turns: tuple[Exchange, ...] = ()
    """Turns that came before, as the caller tells them; not the simulator's word."""
    accelerators: tuple[str, ...] = ()
    """What the engine computed on when it began, of each replica where they differ: the service's
    word, which no caller gives."""

    @model_validator(mode="after")
    def _has_one_past(self) -> Self:
        if self.fork and self.replay:
            raise ValueError("an episode forks another one or repeats it; leave one of the two")
        return self

    @property
    def text(self) -> str:
        """Canonical JSON of all but defaults, as stored and named: a later field renames none."""
        return canonical_json(self.model_dump(mode="json", exclude_defaults=True)).decode()

    @property
    def start(self) -> str:
        """The initial state as the simulator's prompt tells it."""
        return self.task.initial_state if self.task else self.initial_state

    @property
    def limit(self) -> int:
        """The last step that is answered."""
        return self.task.turn_limit if self.task else self.turn_limit

    @property
    def control(self) -> Digest:
        """Names the instruction that steers this episode's world (Qwen-AgentWorld 3.5)."""
        return digest_bytes(self.simulation_instruction.encode())


class Confidence(NamedTuple):
    """How sure the simulator was of an observation."""

    mean_logprob: float | None = None
    """Of the answer's tokens; null where the engine does not tell."""
    agreement: float | None = None
    """Share of further samples that said the same; null where none were asked for."""
    low: bool = False
    """Below a threshold of the manifest, or not known to reach it."""


class EpisodeStep(NamedTuple):
    """One answered step, as it is stored. Not a pydantic record: its texts may be no Unicode."""

    episode: str
    number: int
    """1 for the first; a client's name for the step, so that it is taken once."""
    action: str | None
    """Null once erased."""
    observation: str | None
    action_digest: Digest
    observation_digest: Digest
    reward: float | None = None
    """Null without a task, and while a task is still open."""
    done: bool = False
    truncated: bool = False
    """Done because of the turn limit."""
    confidence: Confidence = Confidence()
    usage: Usage = Usage()
    """What it cost; it shapes no observation and is in no head."""
    head: Digest = ""
    """Over the head before it and this step, so that no earlier step can be exchanged."""

    @property
    def ending(self) -> CloseReason | None:
        """Why no step follows this one; null where one may."""
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
    """An episode as the ledger holds it."""

    id: str
    simulator: Digest
    run: str
    opening: EpisodeOpening | None
    """Null once erased."""
    opening_digest: Digest
    num_copied: int = 0
    """Its first steps that came with a fork: the agent of another episode took them."""
    steps: tuple[EpisodeStep, ...] = ()
    closed: CloseReason | None = None

    @classmethod
    def new(cls, name: str, simulator: Digest, opening: EpisodeOpening) -> "Episode":
        """An episode as it is opened, without a step yet."""
        copied = opening.fork.step if opening.fork else 0
        return cls(name, simulator, opening.run, opening, text_digest(opening.text), copied)

    @property
    def opened_with(self) -> EpisodeOpening:
        """Its opening; raises Conflict where retention erased it."""
        if self.opening is None:
            raise Conflict(f"what episode {self.id} was opened with was erased by retention")
        return self.opening

    @property
    def head(self) -> Digest:
        """Names everything that was answered so far."""
        return self.steps[-1].head if self.steps else self.first_head

    @property
    def first_head(self) -> Digest:
        """Names what the episode started with."""
        return first_head(self.id, self.simulator, self.run, self.num_copied, self.opening_digest)

    @property
    def intact(self) -> bool:
        """Every head follows from the one before it, and every text is the one of its digest."""
        return self.has_whole_opening and self.follows(self.first_head)

    def follows(self, head: Digest) -> bool:
        """Whether its steps are chained to this first head, each with its own texts."""
        for number, step in enumerate(self.steps, 1):
            if step.number != number or not _is_whole(step) or step.head_after(head) != step.head:
                return False
            head = step.head
        return True

    @property
    def has_whole_opening(self) -> bool:
        """What it was opened with, unless it is erased, is what its start names."""
        if self.opening is None:
            return True
        return Episode.new(self.id, self.simulator, self.opening)[:6] == self[:6]


class ResetResult(Record):
    """The answer to an opened episode: no observation, for the world has not spoken yet."""

    simulator: Digest
    run: str
    episode: str
    step: int = 0
    """Steps taken so far: those of a fork."""
    instruction: str | None = None
    """The task's words for the agent; null without a task."""
    control: Digest
    """Names the instruction that steers the world."""


class StepResult(NamedTuple):
    """What an agent is answered; `simulator` is on every response."""

    simulator: Digest
    run: str
    episode: str
    step: int
    """Steps taken so far."""
    observation: str
    reward: float | None = None
    """Null without a task, and while a task is still open."""
    done: bool = False
    truncated: bool = False
    """Done because of the turn limit."""
    mean_logprob: float | None = None
    agreement: float | None = None
    low_confidence: bool = False
    """A trainer should mask this step."""


def new_name() -> str:
    """A name for an episode: a UUID of version 7 (RFC 9562), in hexadecimal.

    Names of one time are neighbours, so that the steps of episodes that go on at once share pages
    of the ledger's index. Nothing depends on their order.
    """
    milliseconds, random_bits = time.time_ns() // 1_000_000, secrets.randbits(74)
    high, low = divmod(random_bits, 2**62)
    return f"{milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low:032x}"


def first_head(
    episode: str, simulator: Digest, run: str, num_copied: int, opening: Digest
) -> Digest:
    """Names what an episode started with: sha256 over an array of these (RFC 8785)."""
    return digest_json([episode, simulator, run, num_copied, opening])


def next_head(
    before: Digest,
    number: int,
    action: Digest,
    observation: Digest,
    outcome: tuple[float | None, ...],
) -> Digest:
    """The head of a step: sha256 over five lines, the last one canonical JSON.

    They are the head before it, the number, the digests of action and observation, and an array
    of reward, done, truncated and the confidence's fields (RFC 8785).
    """
    lines = before, str(number), action, observation, _encode_outcome(outcome)
    return digest_bytes("\n".join(lines).encode())


def text_bytes(text: str) -> bytes:
    """UTF-8, and what is no Unicode (a lone surrogate) as it would be in it."""
    return text.encode("utf-8", "surrogatepass")


def text_of(data: bytes) -> str:
    """The text of these bytes."""
    return data.decode("utf-8", "surrogatepass")


def text_digest(text: str) -> Digest:
    """Names a text by its bytes."""
    return digest_bytes(text_bytes(text))


def heads_digest(steps: Sequence[EpisodeStep]) -> Digest:
    """Names the heads of several steps in their order."""
    return digest_bytes("\n".join(step.head for step in steps).encode())


@lru_cache(1024)
def _encode_outcome(outcome: tuple[float | None, ...]) -> str:
    """Most steps end in one of few ways."""
    return rfc8785.dumps(list(outcome)).decode()


def _is_whole(step: EpisodeStep) -> bool:
    action, observation = step.action, step.observation
    return (action is None or text_digest(action) == step.action_digest) and (
        observation is None or text_digest(observation) == step.observation_digest
    )
