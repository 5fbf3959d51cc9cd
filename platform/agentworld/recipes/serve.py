"""How a world model is evaluated, pinned and served."""

from typing import Literal

from pydantic import Field

from agentworld.records.base import Record
from agentworld.records.simulator import Sampling


class EngineRecipe(Record):
    """Which OpenAI-compatible program serves a checkpoint."""

    kind: Literal["transformers-serve", "vllm"] = "transformers-serve"
    cache_blocks: int = 512
    """Key-value blocks of transformers serve; without a cap its cache takes most of the memory."""
    batch_tokens: int = 512
    """Most tokens that transformers serve computes at once."""
    concurrency: int = 8
    """Requests that are under way at once. On a CPU transformers serve compares every query with
    every request's keys, so that fewer at once are faster; vLLM takes more."""


class EvaluateRecipe(Record):
    """Held-out episodes for the stages' checkpoints."""

    num_episodes: int = Field(80, gt=0)
    num_free_running: int = Field(12, ge=0)
    """Episodes that also run on the model's own observations, from the last checkpoint."""
    num_resamples: int = 2_000
    seed: int = 0


class SimulateRecipe(Record):
    """The pinned simulator."""

    sampling: Sampling = Sampling()
    control_text: str = ""


class ValidateRecipe(Record):
    """Held-out tasks for the agent, before and after, simulated and live."""

    num_tasks: int = Field(120, gt=0)
    num_resamples: int = 2_000
    seed: int = 0
