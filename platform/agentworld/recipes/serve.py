"""How a world model is evaluated, pinned and served."""

import operator
from typing import Literal, Self

from pydantic import Field, model_validator

from agentworld.records.base import Label, Record
from agentworld.records.engine_environment import EngineEnvironment
from agentworld.records.simulator import ConfidencePolicy, RetryPolicy, Sampling
from agentworld.records.validation import ValidationRule

METRICS = (
    "rule",
    "normalised",
    "token_f1",
    "rouge_l",
    "json_keys",
    "json_values",
    "embedding",
)
"""Beside exact match; see `evaluate.metrics`."""


class EngineRecipe(Record):
    """Which OpenAI-compatible program serves a checkpoint."""

    kind: Literal["transformers-serve", "vllm"] = "transformers-serve"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """What weights and activations are computed in."""
    quantisation: str | None = None
    """As vLLM names it; null takes the weights as they are, or as their config says."""
    parallelism: int = Field(1, gt=0)
    """Devices that share each layer."""
    cache_blocks: int = 512
    """Key-value blocks of transformers serve; without a cap its cache takes most of the memory."""
    batch_tokens: int = 512
    """Most tokens that transformers serve computes at once."""
    concurrency: int = 8
    """Requests that are under way at once. On a CPU transformers serve compares every query with
    every request's keys, so that fewer at once are faster; vLLM takes more."""
    environment: EngineEnvironment = Field({}, exclude_if=operator.not_)
    """Variables that it is started with, as `VLLM_BATCH_INVARIANT: "1"`. They are pinned; an engine
    gets none of a shell's own, but for those that say where things are."""

    @model_validator(mode="after")
    def _can_be_started(self) -> Self:
        has_vllm_options = self.quantisation is not None or self.parallelism > 1
        if self.kind == "transformers-serve" and has_vllm_options:
            raise ValueError("transformers-serve takes neither quantisation nor parallelism")
        return self


class EvaluateRecipe(Record):
    """Held-out episodes for the stages' checkpoints."""

    num_episodes: int = Field(80, gt=0)
    num_free_running: int = Field(12, ge=0)
    """Episodes that also run on the model's own observations, from the last checkpoint."""
    metrics: tuple[str, ...] = METRICS
    """Beside exact match. One without a value is reported as absent."""
    embedding_model: str | None = None
    """A folder with an encoder for the metric `embedding`, which is absent without one."""
    validated: ValidationRule = ValidationRule()
    """When the report validates the simulator of a stage."""
    at_once: int = Field(1, gt=0)
    """Checkpoints that are served and scored side by side."""
    num_resamples: int = 2_000
    seed: int = 0


class SimulateRecipe(Record):
    """The pinned simulator."""

    sampling: Sampling = Sampling()
    control_text: str = ""
    context_tokens: int | None = Field(None, gt=0)
    """Null takes what the model's config says, or what nearly every endpoint takes."""
    retry: RetryPolicy = RetryPolicy()
    confidence: ConfidencePolicy = ConfidencePolicy()
    domains: dict[Label, str | None] = {}
    """The kinds of world that it simulates, each with its system prompt; a null prompt is the one
    that worlds of this domain are trained with. Without any they are those of the checkpoint's
    data, or `text` for a model from elsewhere."""


class DeployRecipe(Record):
    """What the simulator of a world model that passed its gate is called from then on."""

    alias: Label = "world"
    """The recipe's gate lets it move, as far as it asks of the stage that is served."""


class ValidateRecipe(Record):
    """Held-out tasks for the agent, before and after, simulated and live."""

    num_tasks: int = Field(120, gt=0)
    num_resamples: int = 2_000
    seed: int = 0


class NightlyRecipe(Record):
    """Fresh live episodes for what is served."""

    simulator: str = ""
    """An alias, a digest or its start, or a folder, where nobody names another; empty means
    `deploy.alias`.
    """
    num_episodes: int = Field(64, gt=0)
    concurrency: int = Field(8, gt=0)
    """Episodes that are replayed at once."""
    metrics: tuple[str, ...] = METRICS
    """Beside exact match. One without a value is reported as absent."""
    embedding_model: str | None = None
    """A folder with an encoder for the metric `embedding`, which is absent without one."""
    validated: ValidationRule = ValidationRule()
    """When the report validates the simulator that was measured."""
    num_resamples: int = 2_000
    seed: int = 0
    """Of the resamples; the episodes' own is another one each night."""
