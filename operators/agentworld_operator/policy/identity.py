"""The digest of a Simulator's manifest, or why it has none."""

from typing import NamedTuple

from pydantic import ValidationError

from agentworld.cluster.records.serving import Serving
from agentworld.cluster.records.simulator import Reference
from agentworld.records.base import Digest, digest_bytes, first_problem
from agentworld.records.engine_environment import refused_argument
from agentworld.records.simulator import Endpoint, EnginePin, SimulatorManifest
from agentworld_operator.policy.problem import Problem


class SimulatorIdentity(NamedTuple):
    """A valid manifest, and its digest."""

    digest: Digest
    manifest: SimulatorManifest


def read_reference(reference: Reference, content: bytes) -> SimulatorIdentity | Problem:
    """Reads the manifest at a reference; refuses one with another digest."""
    digest = digest_bytes(content)
    if digest != reference.digest:
        return Problem(
            "AnotherManifest",
            f"{reference.url} has {digest} and not {reference.digest}; restore it, or create a"
            " Simulator of its content",
        )
    try:
        manifest = SimulatorManifest.model_validate_json(content)
    except ValidationError as error:
        return Problem("NoManifest", f"{reference.url} is not a manifest: {first_problem(error)}")
    if manifest.digest != digest:
        return Problem("NoManifest", f"{reference.url} was rewritten in another form; restore it")
    return SimulatorIdentity(digest, manifest)


def servable(manifest: SimulatorManifest, serving: Serving) -> Problem | None:
    """Why a cluster cannot serve the manifest; null if it can."""
    engine = manifest.engine
    if isinstance(engine, Endpoint):
        return None
    if engine.kind != "vllm":
        return Problem(
            "EngineUnsupported",
            f"the manifest pins {engine.kind}, which cannot prove what it serves; pin it for vllm",
        )
    return _cannot_run(engine, serving)


def _cannot_run(engine: EnginePin, serving: Serving) -> Problem | None:
    if engine.image is None:
        return Problem(
            "NoImage",
            "the manifest pins an environment and no container image; pin it for an image",
        )
    if unsafe := refused_argument(engine.arguments):
        return Problem("EngineUnsafe", f"the manifest's engine.arguments: {unsafe}; pin again")
    for field in ("image", "weights"):
        if getattr(serving, field) is None:
            return Problem(
                "NotPlaced", f"spec.serving.{field} is not set; say where the engine's {field} is"
            )
    return None
