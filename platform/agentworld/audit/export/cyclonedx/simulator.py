"""The simulator in a bill of materials, with its engine or endpoint."""

import shlex
from collections.abc import Iterator

from agentworld.audit.export.cyclonedx.parts import (
    Inventory,
    Part,
    component,
    properties_of,
    short,
    to_iri,
)
from agentworld.records.base import Digest
from agentworld.records.simulator import Endpoint, EnginePin, SimulatorManifest

_COVERS = "the bytes of the simulator's manifest.json"


def add_simulator(inventory: Inventory, digest: Digest, manifest: SimulatorManifest | None) -> None:
    """Adds a simulator; only its digest if the store lacks its manifest."""
    name = f"simulator-{short(digest)}"
    if manifest is None:
        inventory.add(component("application", name, digest, _COVERS))
        return
    answering = _engine(manifest.engine)
    inventory.add(
        component("application", name, digest, _COVERS, _properties(manifest)),
        uses=[*_uses(manifest), str(answering["bom-ref"])],
    )
    inventory.add(answering, is_service=isinstance(manifest.engine, Endpoint))


def _uses(manifest: SimulatorManifest) -> Iterator[Digest]:
    if manifest.artifact:
        yield manifest.artifact


def _properties(manifest: SimulatorManifest) -> dict[str, object]:
    return {
        "domains": {name: pin.version for name, pin in manifest.domains.items()},
        "sampling": manifest.sampling.model_dump(mode="json"),
        "context-tokens": manifest.context_tokens,
        "renderer": manifest.renderer,
        "request": manifest.request,
        "parser": manifest.parser,
    }


def _engine(engine: EnginePin | Endpoint) -> Part:
    if isinstance(engine, Endpoint):
        reference = f"{engine.url}#{engine.model}"
        return {"bom-ref": reference, "name": engine.model, "endpoints": [to_iri(engine.url)]}
    return {
        "type": "application",
        "bom-ref": f"{engine.kind}@{engine.version}",
        "name": engine.kind,
        "version": engine.version,
        "properties": properties_of(
            {
                "image": engine.image,
                "lock": engine.lock,
                "dtype": engine.dtype,
                "quantisation": engine.quantisation,
                "parallelism": engine.parallelism,
                "arguments": shlex.join(engine.arguments),
            }
        ),
    }
