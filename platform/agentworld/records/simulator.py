"""A simulator's manifest: everything that shapes an observation, frozen.

Equal digests are the same configuration; a different byte gives a different digest.
The form is final from the first version on (`schema: v1`).
"""

from typing import Literal

from pydantic import Field

from agentworld.records.base import Digest, Record


class Sampling(Record):
    """How the engine draws tokens."""

    temperature: float = Field(0.0, ge=0)
    """0 takes the likeliest token, whatever top_p and top_k say."""
    top_p: float = Field(1.0, gt=0, le=1)
    """1 considers every token."""
    top_k: int = Field(0, ge=0)
    """0 considers every token."""
    max_tokens: int = Field(256, gt=0)
    """Of one answer, thoughts included; a longer one is an error and never a part."""
    stop: tuple[str, ...] = ()
    """An answer ends before the first of these."""
    thinking: bool = False
    seed_policy: Literal["refuse", "seeded"] = "refuse"
    """`seeded` only where a probe showed equal bytes for equal seeds."""


class EnginePin(Record):
    """Which program turns messages into text."""

    kind: Literal["transformers-serve", "vllm", "openai"]
    version: str
    lock: Digest
    """Of the engine's image, or of the constraints that its environment was installed from."""
    dtype: str = "float32"
    quantisation: str | None = None
    parallelism: int = 1
    arguments: tuple[str, ...] = ()


class RetryPolicy(Record):
    """How often the service asks the engine for one answer before it gives a typed error."""

    attempts: int = Field(1, ge=1, le=10)
    retry_on: tuple[Literal["engine", "cut-off", "unparsable"], ...] = ()
    """Kinds of EngineError; only those that a retry can help are tried again."""


class SimulatorManifest(Record):
    """A world model, or an endpoint, with everything that shapes its observations."""

    schema_version: Literal["v1"] = Field("v1", alias="schema")
    artifact: Digest
    files: dict[str, Digest]
    """The artifact manifest: weights, tokenizer, chat template, generation defaults."""
    system_prompt: str
    """The template's text before the episode's own initial state."""
    control_text: str = ""
    """The default simulation instruction."""
    sampling: Sampling
    context_tokens: int = Field(gt=0)
    """A prompt and its longest answer must fit."""
    on_context_overflow: Literal["error"] = "error"
    engine: EnginePin
    renderer: str
    parser: str
    retry: RetryPolicy = RetryPolicy()
    confidence_threshold: float | None = None
    domains: tuple[str, ...]
