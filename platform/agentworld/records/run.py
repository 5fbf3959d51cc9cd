"""An agent's training run with one simulator, its episodes, and their steps."""

from typing import Literal

from agentworld.records.base import Digest, Record
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
    initial_state: str = "empty"
    simulation_instruction: str = ""
    turn_limit: int = 32


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
