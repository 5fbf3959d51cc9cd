"""An agent's training run with one simulator, its episodes, and their steps."""

from typing import Literal

from pydantic import Field

from agentworld.records.base import Digest, Record, digest_json
from agentworld.records.task import Task


class RunOpening(Record):
    """What is known when a run is opened."""

    agent: str
    """The name of the agent that is to be made."""
    starting_weights: Digest
    purpose: Literal["training", "evaluation"] = "training"


class AgentRun(Record):
    """One run; `simulator` never changes, `final_weights` is set when it is closed."""

    id: str
    opening: RunOpening
    simulator: Digest
    final_weights: Digest | None = None
    num_episodes: int = 0
    num_steps: int = 0


class EpisodeOpening(Record):
    """What an episode starts with: a task, or a start of its own without reward."""

    run: str
    task: Task | None = None
    """Its start and its turn limit hold, whatever the two fields below say."""
    initial_state: str = "empty"
    turn_limit: int = Field(32, gt=0)
    simulation_instruction: str = ""
    """In place of the simulator's own control text."""

    @property
    def start(self) -> str:
        """The initial state as the simulator's prompt tells it."""
        return self.task.initial_state if self.task else self.initial_state

    @property
    def limit(self) -> int:
        """The last step that is answered."""
        return self.task.turn_limit if self.task else self.turn_limit


class EpisodeStep(Record):
    """One answered step, as it is stored."""

    episode: str
    number: int
    """1 for the first."""
    action: str
    observation: str
    reward: float | None = None
    """Null without a task, and while a task is still open."""
    done: bool = False
    truncated: bool = False
    """Done because of the turn limit."""
    head: Digest
    """Over the head before it and this step, so that no earlier step can be exchanged."""

    def linked(self, before: Digest) -> "EpisodeStep":
        """This step with the head that follows `before`."""
        answered = self.model_dump(mode="json", exclude={"head"})
        return self.model_copy(update={"head": digest_json([before, answered])})


class Episode(Record):
    """One interaction with one simulator in one run: append-only steps."""

    id: str
    simulator: Digest
    opening: EpisodeOpening
    steps: tuple[EpisodeStep, ...] = ()

    @property
    def done(self) -> bool:
        """No further step is answered."""
        return bool(self.steps) and self.steps[-1].done

    @property
    def head(self) -> Digest:
        """Names everything that was answered so far."""
        return self.steps[-1].head if self.steps else self._first_head()

    @property
    def intact(self) -> bool:
        """Every head follows from the one before it."""
        heads = [self._first_head(), *(step.head for step in self.steps)]
        return all(
            step == step.linked(before) for before, step in zip(heads, self.steps, strict=False)
        )

    def _first_head(self) -> Digest:
        return digest_json([self.id, self.simulator, self.opening.model_dump(mode="json")])


class ResetResult(Record):
    """The answer to an opened episode: no observation, for the world has not spoken yet."""

    simulator: Digest
    run: str
    episode: str
    step: int = 0
    instruction: str | None = None
    """The task's words for the agent; null without a task."""


class StepResult(Record):
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
