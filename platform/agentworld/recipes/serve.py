"""Evaluation, pinning and serving of a world model."""

import operator
from typing import Literal, Self

from pydantic import Field, model_validator

from agentworld.recipes.endpoint import EndpointRecipe
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
"""In addition to exact match; see `evaluate.metrics`."""


class EngineRecipe(Record):
    """Which OpenAI-compatible program serves a checkpoint."""

    kind: Literal["transformers-serve", "vllm"] = "transformers-serve"
    """The program."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Number format of weights and activations."""
    quantisation: str | None = None
    """Quantisation by vLLM's name; null uses that of the model's config, if it has one."""
    parallelism: int = Field(1, gt=0)
    """Devices that share each layer (tensor parallelism)."""
    cache_blocks: int = Field(512, gt=0)
    """Key-value blocks of transformers serve, whose cache is otherwise unbounded."""
    batch_tokens: int = Field(512, gt=0)
    """Most tokens that transformers serve computes at once."""
    concurrency: int = Field(8, gt=0)
    """Concurrent requests: few for transformers serve on a CPU, more for vLLM."""
    environment: EngineEnvironment = Field({}, exclude_if=operator.not_)
    """Environment variables of the program, as `VLLM_BATCH_INVARIANT: "1"`; they are pinned."""

    @model_validator(mode="after")
    def _can_be_started(self) -> Self:
        has_vllm_options = self.quantisation is not None or self.parallelism > 1
        if self.kind == "transformers-serve" and has_vllm_options:
            raise ValueError("transformers-serve takes neither quantisation nor parallelism")
        return self


class EvaluateRecipe(Record):
    """Held-out episodes for the stages' checkpoints."""

    num_episodes: int = Field(80, gt=0)
    """Held-out episodes that each checkpoint predicts."""
    num_free_running: int = Field(12, ge=0)
    """Episodes in which the last checkpoint also continues from its own observations."""
    metrics: tuple[str, ...] = METRICS
    """Metrics beside exact match; one without a value is reported as absent."""
    embedding_model: str | None = None
    """A folder with the encoder for the metric `embedding`, which is absent without one."""
    judge: EndpointRecipe | None = Field(None, exclude_if=lambda judge: judge is None)
    """A model that compares each prediction with the truth, for the metrics `judge` and those that
    begin with `judge_` (Qwen-AgentWorld section 4.2); null asks none."""
    validated: ValidationRule = ValidationRule()
    """When the report validates the simulator of a stage."""
    at_once: int = Field(1, gt=0)
    """Checkpoints that are served and scored at the same time."""
    num_resamples: int = Field(2_000, gt=0)
    """Bootstrap resamples of each interval."""
    seed: int = 0
    """Seed of the choice of tasks or episodes, and of the resamples."""

    @property
    def identity(self) -> "EvaluateRecipe":
        """The fields that scores depend on, without addresses. The embedding model's content is an
        input of its own.
        """
        judge = self.judge.identity if self.judge else None
        return self.model_copy(update={"embedding_model": None, "judge": judge})


class SimulateRecipe(Record):
    """The pinned simulator."""

    sampling: Sampling = Sampling()
    control_text: str = ""
    """An instruction to the simulator in each episode's prompt."""
    context_tokens: int | None = Field(None, gt=0)
    """Longest context; null uses the value of the model's config, or a default for endpoints."""
    retry: RetryPolicy = RetryPolicy()
    confidence: ConfidencePolicy = ConfidencePolicy()
    domains: dict[Label, str | None] = {}
    """Domains to simulate, each with its system prompt; a null prompt uses the domain's own.

    Empty uses the domains of the checkpoint's data, or `text` for imported weights.
    """


class DeployRecipe(Record):
    """The alias of a simulator whose world model passed its gate."""

    alias: Label = "world"
    """The alias that points at the simulator after its gate passed."""


class ValidateRecipe(Record):
    """Held-out tasks for the agent, before and after, simulated and live."""

    num_tasks: int = Field(120, gt=0)
    """Held-out tasks that the agent is given."""
    num_resamples: int = Field(2_000, gt=0)
    """Bootstrap resamples of each interval."""
    seed: int = 0
    """Seed of the choice of tasks or episodes, and of the resamples."""


class NightlyRecipe(Record):
    """The measurement of a served simulator with fresh live episodes."""

    simulator: str = ""
    """The simulator to measure: an alias, a digest or its start, or a folder; empty means
    `deploy.alias`.
    """
    num_episodes: int = Field(64, gt=0)
    """Fresh live episodes of each night."""
    concurrency: int = Field(8, gt=0)
    """Episodes that are replayed at the same time."""
    metrics: tuple[str, ...] = METRICS
    """Metrics beside exact match; one without a value is reported as absent."""
    embedding_model: str | None = None
    """A folder with the encoder for the metric `embedding`, which is absent without one."""
    validated: ValidationRule = ValidationRule()
    """When the report validates the simulator that was measured."""
    num_resamples: int = Field(2_000, gt=0)
    """Bootstrap resamples of each interval."""
    seed: int = 0
    """Seed of the resamples; each night records its own episodes."""
