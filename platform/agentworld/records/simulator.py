"""A simulator's manifest: the frozen list of everything that shapes an observation.

Equal digests mean equal configurations; a different byte gives a different digest. The file of a
manifest is exactly its canonical JSON, so that `sha256sum` prints its digest. One simulator may
have several domains (`schema: v2`, decision 0051).
"""

import operator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter, model_validator

from agentworld.errors import InputError
from agentworld.records.base import Digest, Label, Record, digest_file
from agentworld.records.engine_environment import EngineEnvironment
from agentworld.records.file import write_whole

_LABEL = TypeAdapter(Label)
_Count = Annotated[int, Field(gt=0, lt=2**31)]
_Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#@]*)?$")]


class Sampling(Record):
    """How the engine draws tokens."""

    temperature: float = Field(0.0, ge=0)
    """0 takes the likeliest token, whatever top_p and top_k say."""
    top_p: float = Field(1.0, gt=0, le=1)
    """1 considers every token."""
    top_k: int = Field(0, ge=0, lt=2**31)
    """0 considers every token."""
    max_tokens: _Count = 256
    """Of one answer, thoughts included; a longer one is an error and never a part."""
    stop: tuple[str, ...] = ()
    """An answer ends before the first of these."""
    thinking: bool = False
    """Let the model think before it answers."""
    seed_policy: Literal["refuse", "seeded"] = "refuse"
    """`seeded` only where a probe showed equal bytes for equal seeds."""


class EnginePin(Record):
    """Which program turns messages into text."""

    kind: Literal["transformers-serve", "vllm"]
    version: str
    image: Digest | None = None
    """Of the container image that it runs in; null where it runs in an environment."""
    lock: Digest | None = None
    """Of the installed versions of it and all that it requires; null where it has an image."""
    dtype: str = "float32"
    quantisation: str | None = None
    parallelism: _Count = 1
    """Devices that share each layer; the order of sums depends on it."""
    arguments: tuple[str, ...] = ()
    environment: EngineEnvironment = Field({}, exclude_if=operator.not_)
    """Variables that it is started with; left out where there are none."""

    @model_validator(mode="after")
    def _is_installed_once(self) -> Self:
        if (self.image is None) == (self.lock is None):
            raise ValueError("an engine runs in an image or in an environment, one of the two")
        return self


class Endpoint(Record):
    """Somebody's OpenAI-compatible server; what it serves cannot be verified."""

    kind: Literal["openai"] = "openai"
    url: _Url
    """Without a name, a password or a query: a manifest is no place for a secret."""
    model: str = Field(min_length=1)
    """The name that is asked for."""


class RetryPolicy(Record):
    """How often the service asks the engine for one answer before it gives a typed error."""

    attempts: int = Field(1, ge=1, le=10)
    """How often one answer is asked for at most."""
    retry_on: tuple[Literal["engine", "slow", "capacity", "cut-off", "unparsable"], ...] = ()
    """Kinds of EngineError; only those that a retry can help are tried again."""


class ConfidencePolicy(Record):
    """How sure an answer must be, and what becomes of one that is not, or not known to be."""

    num_samples: int = Field(1, ge=1, le=16)
    """Answers asked for each step; the first is the observation, the others agree or not."""
    min_logprob: float | None = None
    """Least mean log-probability of the answer's tokens, for engines that tell it. An endpoint is
    asked to tell it only where this is set, for some refuse such a request."""
    min_agreement: float | None = Field(None, ge=0, le=1)
    """Least share of the other samples that say the same."""
    below: Literal["mark", "refuse"] = "mark"
    """Marked, so that a trainer can mask it, or a typed error."""

    @model_validator(mode="after")
    def _compares_several(self) -> Self:
        if self.min_agreement is not None and self.num_samples == 1:
            raise ValueError(
                "one sample agrees with nothing: raise num_samples, or unset min_agreement"
            )
        return self


class DomainPin(Record):
    """What a simulator answers a domain's episodes with."""

    version: str
    """Of the domain's code: what it renders, parses and scores."""
    system_prompt: str
    """The template's text before the episode's own initial state."""


def _with_labels(domains: dict[str, DomainPin]) -> dict[str, DomainPin]:
    """Checks the names here and not by their type: a custom resource has no `patternProperties`."""
    for name in domains:
        _LABEL.validate_python(name)
    return domains


class SimulatorManifest(Record):
    """A world model, or an endpoint, with everything that shapes its observations."""

    schema_version: Literal["v2"] = Field("v2", alias="schema")
    artifact: Digest | None
    """Null for a world from an endpoint: nobody can verify what that serves."""
    files: dict[str, Digest]
    """The artifact manifest: weights, adapters, tokenizer, chat template, generation defaults."""
    control_text: str = ""
    """The default simulation instruction."""
    sampling: Sampling
    context_tokens: _Count
    """A prompt and its longest answer must fit."""
    on_context_overflow: Literal["error"] = "error"
    engine: Annotated[EnginePin | Endpoint, Field(discriminator="kind")]
    renderer: str
    request: str
    """How the engine is asked."""
    parser: str
    retry: RetryPolicy = RetryPolicy()
    confidence: ConfidencePolicy = ConfidencePolicy()
    domains: Annotated[dict[str, DomainPin], AfterValidator(_with_labels)] = Field(min_length=1)
    """The kinds of world that it simulates."""

    @model_validator(mode="after")
    def _has_weights_or_an_endpoint(self) -> Self:
        if isinstance(self.engine, Endpoint):
            if self.artifact or self.files:
                raise ValueError("what an endpoint serves has no artifact and no files")
        elif self.artifact is None:
            raise ValueError("an engine of ours serves an artifact")
        return self

    def domain_of(self, opening_domain: str) -> str:
        """The domain of an episode whose opening names this domain, or none.

        Without a name it is the simulator's only domain. Raises InputError for an unknown domain,
        and if the simulator has several and the opening names none.
        """
        if opening_domain in self.domains:
            return opening_domain
        names = ", ".join(self.domains)
        if opening_domain:
            raise InputError(f"this simulator has no domain {opening_domain!r}; it has {names}")
        if len(self.domains) > 1:
            raise InputError(f"this simulator has several domains; name one of {names}")
        return next(iter(self.domains))

    def write(self, path: Path) -> None:
        """Writes the bytes that the digest covers."""
        write_whole(path, self.canonical)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a manifest; raises InputError if the file's digest is not that of the manifest."""
        manifest = super().read(path)
        if digest_file(path) != manifest.digest:
            raise InputError(f"{path} was written anew, in another form; restore it or pin again")
        return manifest
