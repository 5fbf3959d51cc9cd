"""A simulator's manifest: the frozen list of everything that affects an observation.

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
    """The engine's sampling parameters."""

    temperature: float = Field(0.0, ge=0)
    """0 is greedy decoding, whatever top_p and top_k are."""
    top_p: float = Field(1.0, gt=0, le=1)
    """1 considers every token."""
    top_k: int = Field(0, ge=0, lt=2**31)
    """0 considers every token."""
    max_tokens: _Count = 256
    """The limit of one response, thoughts included; a longer one is an error, never a partial
    response.
    """
    stop: tuple[str, ...] = ()
    """A response ends before the first of these."""
    thinking: bool = False
    """Whether the model thinks before it responds."""
    seed_policy: Literal["refuse", "seeded"] = "refuse"
    """`seeded` only if a probe showed equal bytes for equal seeds."""


class EnginePin(Record):
    """The program that generates text from messages."""

    kind: Literal["transformers-serve", "vllm"]
    version: str
    image: Digest | None = None
    """The digest of its container image; null if it runs in an environment."""
    lock: Digest | None = None
    """The digest of the installed versions of it and its requirements; null if it has an image."""
    dtype: str = "float32"
    quantisation: str | None = None
    parallelism: _Count = 1
    """Devices that share each layer; the order of sums depends on it."""
    arguments: tuple[str, ...] = ()
    environment: EngineEnvironment = Field({}, exclude_if=operator.not_)
    """Its environment variables; left out if there are none."""

    @model_validator(mode="after")
    def _is_installed_once(self) -> Self:
        if (self.image is None) == (self.lock is None):
            raise ValueError(
                "an engine runs either in an image or in an environment; give exactly one"
            )
        return self


class Endpoint(Record):
    """An external OpenAI-compatible server, whose model cannot be verified."""

    kind: Literal["openai"] = "openai"
    url: _Url
    """Without a user name, a password or a query, because a manifest is no place for secrets."""
    model: str = Field(min_length=1)
    """The model name of the requests."""


class RetryPolicy(Record):
    """The service's retries of a request to the engine before it returns a typed error."""

    attempts: int = Field(1, ge=1, le=10)
    """The maximum number of requests for one response."""
    retry_on: tuple[Literal["engine", "slow", "capacity", "cut-off", "unparsable"], ...] = ()
    """Kinds of EngineError to retry; only those that a retry can fix."""


class ConfidencePolicy(Record):
    """The required confidence of an observation, and the reaction if it is lower or unknown."""

    num_samples: int = Field(1, ge=1, le=16)
    """The samples of each step; the first is the observation, the others agree or not."""
    min_logprob: float | None = None
    """The minimum mean log-probability of the response's tokens, for engines that report it.
    Endpoints are only asked to report it if this is set, because some refuse such requests.
    """
    min_agreement: float | None = Field(None, ge=0, le=1)
    """The minimum share of the other samples that agree."""
    below: Literal["mark", "refuse"] = "mark"
    """Mark the observation, so that a trainer can mask it, or return a typed error."""

    @model_validator(mode="after")
    def _compares_several(self) -> Self:
        if self.min_agreement is not None and self.num_samples == 1:
            raise ValueError(
                "a single sample has nothing to agree with: raise num_samples, or unset"
                " min_agreement"
            )
        return self


class DomainPin(Record):
    """A simulator's configuration for a domain's episodes."""

    version: str
    """The version of the domain's code: rendering, parsing and scoring."""
    system_prompt: str
    """The template's text before the episode's own initial state."""


def _with_labels(domains: dict[str, DomainPin]) -> dict[str, DomainPin]:
    """Checks the names here and not by their type, because a custom resource has no
    `patternProperties`.
    """
    for name in domains:
        _LABEL.validate_python(name)
    return domains


class SimulatorManifest(Record):
    """A world model, or an endpoint, with everything that affects its observations."""

    schema_version: Literal["v2"] = Field("v2", alias="schema")
    artifact: Digest | None
    """The digest of the model; null for an endpoint, whose model cannot be verified."""
    files: dict[str, Digest]
    """The artifact manifest: weights, adapters, tokenizer, chat template, generation defaults."""
    control_text: str = ""
    """The default simulation instruction."""
    sampling: Sampling
    context_tokens: _Count
    """The limit for a prompt and its longest response together."""
    on_context_overflow: Literal["error"] = "error"
    engine: Annotated[EnginePin | Endpoint, Field(discriminator="kind")]
    renderer: str
    request: str
    """The form of requests to the engine."""
    parser: str
    retry: RetryPolicy = RetryPolicy()
    confidence: ConfidencePolicy = ConfidencePolicy()
    domains: Annotated[dict[str, DomainPin], AfterValidator(_with_labels)] = Field(min_length=1)
    """The domains that it simulates."""

    @model_validator(mode="after")
    def _has_weights_or_an_endpoint(self) -> Self:
        if isinstance(self.engine, Endpoint):
            if self.artifact or self.files:
                raise ValueError("an endpoint has neither an artifact nor files")
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
            raise InputError(f"{path} was rewritten in another form; restore it or pin again")
        return manifest
