"""The models in a bill of materials: the agent's starting weights, the stages of the world model
that its simulator serves, and their base models.
"""

from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from agentworld.audit.checks.statements import registrations
from agentworld.audit.export.cyclonedx.parts import (
    MODEL,
    Inventory,
    Part,
    component,
    hashes,
    short,
    to_iri,
)
from agentworld.audit.questions.agent import AgentChain, BaseLink
from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import VersionRef
from agentworld.records.base import Digest, digest_json
from agentworld.records.checkpoint import Checkpoint
from agentworld.records.simulator import SimulatorManifest

_COVERS = "canonical JSON (RFC 8785) of the list of the model's files with their SHA-256"
_APPROACHES = {
    "cpt": "self-supervised",
    "sft": "supervised",
    "rl": "reinforcement-learning",
    "imitation": "supervised",
}


def model(
    name: str,
    digest: Digest,
    properties: Mapping[str, object] | None = None,
    version: int | None = None,
    **fields: JsonValue,
) -> Part:
    """A model component; `version` is the registry's."""
    number = str(version) if version else None
    return component(MODEL, name, digest, _COVERS, properties, version=number, **fields)


def model_card(
    approach: str | None, data: Iterable[Digest], metrics: Sequence[JsonValue] = ()
) -> Part:
    """A model's approach, data sets and metrics; empty if unknown."""
    parameters: Part = {}
    if approach:
        parameters["approach"] = {"type": approach}
    references: list[JsonValue] = [{"ref": digest} for digest in data]
    if references:
        parameters["datasets"] = references
    card: Part = {"modelParameters": parameters} if parameters else {}
    if metrics:
        card["quantitativeAnalysis"] = {"performanceMetrics": [*metrics]}
    return card


def add_stages(
    inventory: Inventory, ref: VersionRef, manifest: SimulatorManifest, sources: Sources
) -> None:
    """Adds every stage of a registered world model; the simulator serves the last one."""
    for stage in reversed(sources.registry.world_model(ref).stages):
        is_served = stage.artifact == manifest.artifact
        name = ref.name if is_served else f"{ref.name}/{stage.stage}"
        data = [
            *([stage.data] if stage.data else []),
            *(corpus.content for corpus in stage.corpora.values()),
        ]
        rewarded_by = [stage.reward_model] if stage.reward_model else []
        inventory.add(
            model(
                name,
                stage.artifact,
                _properties(stage),
                ref.version if is_served else None,
                modelCard=model_card(_APPROACHES.get(stage.stage), data),
                components=_files(manifest) if is_served else None,
            ),
            uses=[*stage.parents, *rewarded_by, *data],
        )
        for digest in rewarded_by:
            inventory.add(model(f"reward-model-{short(digest)}", digest))


def add_unregistered(
    inventory: Inventory, manifest: SimulatorManifest, data: Iterable[Digest], sources: Sources
) -> None:
    """Adds served weights without a registered version, because it was withdrawn or never existed.
    `data` are their data sets by the signed edge.
    """
    if manifest.artifact is None:
        return
    name, version = f"world-model-{short(manifest.artifact)}", None
    # Only for now: a withdrawal does not say which versions existed at an earlier time.
    evidence = sources.evidence if sources.at is None else None
    all_withdrawn = (
        registrations(sources.ledger.attestations, evidence).withdrawn if evidence else ()
    )
    for registration in all_withdrawn:
        if registration.artifact == manifest.artifact:
            name, version = registration.registered_as, registration.version
    inventory.add(
        model(
            name,
            manifest.artifact,
            {"withdrawn": True if version else None},
            version,
            modelCard=model_card(None, data),
            components=_files(manifest),
        ),
        uses=data,
    )


def add_bases(inventory: Inventory, chain: AgentChain, sources: Sources) -> None:
    """Adds the base models of the world model's first stage, transitively."""
    for link in chain.bases:
        name, version = f"base-{short(link.artifact)}", None
        uses: tuple[Digest, ...] = ()
        if link.world_model:
            ref = VersionRef.parse(link.world_model)
            name, version = ref.name, ref.version
            uses = sources.registry.world_model(ref).stages[0].parents
        if link.data:
            uses = (*uses, link.data)
        part = model(name, link.artifact, version=version, externalReferences=_address(link))
        inventory.add(part, uses=uses)


def _properties(stage: Checkpoint) -> dict[str, object]:
    return {
        "stage": stage.stage,
        "parameters": stage.num_parameters,
        "domains": list(stage.domains),
        "recipe": digest_json(stage.recipe),
    }


def _files(manifest: SimulatorManifest) -> list[JsonValue]:
    return [
        {"type": "file", "name": name, "hashes": hashes(digest)}
        for name, digest in sorted(manifest.files.items())
    ]


def _address(link: BaseLink) -> list[JsonValue]:
    if link.address is None:
        return []
    return [{"type": "distribution", "url": to_iri(link.address)}]
