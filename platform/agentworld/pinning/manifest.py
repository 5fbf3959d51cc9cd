"""Pins a simulator, and refuses to serve anything that differs from the pin."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agentworld.domains.base import Start, domain_of
from agentworld.engine.base import EngineKind
from agentworld.engine.openai import REQUEST
from agentworld.engine.programs import engine_arguments, engine_version
from agentworld.errors import InputError
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.base import Digest
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.simulator import (
    DomainPin,
    Endpoint,
    EnginePin,
    Sampling,
    SimulatorManifest,
)
from agentworld.rendering.messages import RENDERER, system_text
from agentworld.rendering.parse import PARSER
from agentworld.storage.model_folder import check_safe

_ENDPOINT_TOKENS = 8_192  # accepted by nearly every endpoint
_UNKNOWN_DOMAIN = "text"


def pin(
    artifact: ArtifactManifest,
    recipe: SimulateRecipe,
    engine: EngineRecipe,
    *,
    context_tokens: int,
    lock: Digest | None = None,
    image: Digest | None = None,
    version: str | None = None,
    trained_on: Sequence[str] = (),
) -> SimulatorManifest:
    """Pins a checkpoint with this code and this engine, whose origin is a lock or an image.

    `version` is the version of an engine that is not installed here; `trained_on` are the domains
    of the checkpoint's data, for a recipe that names none.
    """
    _check_seeds(recipe.sampling, engine)
    engine_pin = EnginePin(
        kind=engine.kind,
        version=version or engine_version(engine.kind),
        image=image,
        lock=lock,
        dtype=engine.dtype,
        quantisation=engine.quantisation,
        parallelism=engine.parallelism,
        arguments=engine_arguments(engine, context_tokens),
        environment=engine.environment,
    )
    return _build_manifest(recipe, engine_pin, artifact, context_tokens, trained_on)


def pin_endpoint(endpoint: Endpoint, recipe: SimulateRecipe) -> SimulatorManifest:
    """Pins the requests to a third-party endpoint; its answers cannot be pinned."""
    return _build_manifest(recipe, endpoint, None, recipe.context_tokens or _ENDPOINT_TOKENS, ())


def _build_manifest(
    recipe: SimulateRecipe,
    engine: EnginePin | Endpoint,
    artifact: ArtifactManifest | None,
    context_tokens: int,
    trained_on: Sequence[str],
) -> SimulatorManifest:
    domains = recipe.domains or dict.fromkeys(trained_on or (_UNKNOWN_DOMAIN,))
    longest = recipe.sampling.max_tokens
    if longest >= context_tokens:
        raise InputError(
            f"an answer of {longest} tokens leaves no room for a prompt in a context of"
            f" {context_tokens}; lower simulate.sampling.max_tokens in the recipe"
        )
    _check_confidence(recipe, engine.kind)
    return SimulatorManifest(
        artifact=artifact.digest if artifact else None,
        files=artifact.files if artifact else {},
        control_text=recipe.control_text,
        sampling=recipe.sampling,
        context_tokens=context_tokens,
        engine=engine,
        renderer=RENDERER,
        request=REQUEST,
        parser=PARSER,
        retry=recipe.retry,
        confidence=recipe.confidence,
        domains={name: _pin_domain(name, prompt) for name, prompt in domains.items()},
    )


def _pin_domain(name: str, system_prompt: str | None) -> DomainPin:
    domain = domain_of(name)
    if system_prompt is None:
        system_prompt = system_text(domain.prompt(Start(domain=name)))
    return DomainPin(version=domain.version, system_prompt=system_prompt)


def check_files(manifest: SimulatorManifest, model_folder: Path) -> None:
    """Raises InputError with the first file that is not the pinned one, or is not safe."""
    artifact_of(manifest).verify(model_folder)
    check_safe(model_folder)


def artifact_of(manifest: SimulatorManifest) -> ArtifactManifest:
    """The artifact of its files; raises InputError if the files have another digest."""
    artifact = ArtifactManifest(files=manifest.files)
    if artifact.digest != manifest.artifact:
        raise InputError(
            f"the manifest's files make {artifact.digest} and not its artifact"
            f" {manifest.artifact}; pin again"
        )
    return artifact


def check_code(manifest: SimulatorManifest) -> None:
    """Raises InputError if this code renders, requests or parses differently than the pin."""
    pinned: dict[str, tuple[object, object]] = {
        "renderer": (manifest.renderer, RENDERER),
        "request": (manifest.request, REQUEST),
        "parser": (manifest.parser, PARSER),
    }
    for name, domain in manifest.domains.items():
        pinned[f"domains.{name}.version"] = (domain.version, domain_of(name).version)
    _check_equal(pinned)


def check_engine(manifest: SimulatorManifest, engine: EngineRecipe) -> None:
    """Raises InputError if this engine is not the pinned one."""
    if isinstance(manifest.engine, Endpoint):
        raise InputError(
            f"the manifest's world answers at {manifest.engine.url}; no engine of ours serves it"
        )
    arguments = engine_arguments(engine, manifest.context_tokens)
    pinned = {
        "engine.kind": (manifest.engine.kind, engine.kind),
        "engine.version": (manifest.engine.version, engine_version(engine.kind)),
        "engine.arguments": (manifest.engine.arguments, arguments),
        "engine.environment": (manifest.engine.environment, engine.environment),
    }
    _check_equal(pinned)


def _check_equal(pinned: Mapping[str, tuple[object, object]]) -> None:
    for name, (pin, actual) in pinned.items():
        if pin != actual:
            raise InputError(
                f"the manifest pins {name} {pin!r} and here it is {actual!r}; pin again"
            )


def _check_seeds(sampling: Sampling, engine: EngineRecipe) -> None:
    if sampling.seed_policy == "seeded" and engine.kind == "transformers-serve":
        raise InputError(
            "transformers-serve draws all answers from one stream and takes no seed; set"
            " sampling.seed_policy to refuse"
        )


def _check_confidence(recipe: SimulateRecipe, kind: EngineKind) -> None:
    """Raises InputError for a threshold that would mark every answer as sure, or none."""
    policy = recipe.confidence
    if policy.min_logprob is not None and kind == "transformers-serve":
        raise InputError(
            f"transformers-serve returns no log-probability to compare with {policy.min_logprob};"
            " unset simulate.confidence.min_logprob, or set engine.kind to vllm"
        )
    if policy.num_samples > 1 and recipe.sampling.temperature == 0:
        raise InputError(
            f"{policy.num_samples} samples at temperature 0 are all the same; set"
            " simulate.confidence.num_samples to 1, or raise simulate.sampling.temperature"
        )
