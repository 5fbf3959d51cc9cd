"""An agent's AI bill of materials: its components, and the grade of their evidence.

The same record gives the same bytes: the timestamp is that of the signed edge, and the serial
number is derived from the content.
"""

import uuid
from collections.abc import Iterator

from pydantic import JsonValue

from agentworld import __version__
from agentworld.audit.export.cyclonedx.data import corpus_component, data_component
from agentworld.audit.export.cyclonedx.live import live_metrics, live_properties, report_of
from agentworld.audit.export.cyclonedx.models import (
    add_bases,
    add_stages,
    add_unregistered,
    model,
    model_card,
)
from agentworld.audit.export.cyclonedx.parts import Inventory, Part, hashes, short
from agentworld.audit.export.cyclonedx.simulator import add_simulator
from agentworld.audit.questions.agent import AgentChain, audit_agent
from agentworld.audit.read.sources import Sources, manifest_of
from agentworld.errors import EvidenceError
from agentworld.lineage.base import Agent, VersionRef
from agentworld.records.base import Digest, digest_bytes, digest_json
from agentworld.records.report import AgentReport
from agentworld.records.statements.edge import Edge, SignedEdge, edge_name
from agentworld.signing.envelope import verify_envelope

_IDS = uuid.uuid5(uuid.NAMESPACE_URL, "urn:agentworld:bill-of-materials")


def bill_of_materials(ref: VersionRef, sources: Sources) -> Part:
    """A CycloneDX 1.7 document about a registered agent.

    Raises NotFound if it is not registered, and EvidenceError for an unreadable record.
    Contradictions are listed in properties, as in `audit agent`.
    """
    chain, agent = audit_agent(ref, sources), sources.agent(ref)
    inventory = Inventory()
    signed = _signed_edge(ref, agent, sources)
    root = _agent(ref, chain, agent, report_of(agent, chain, sources), signed)
    starting = chain.run.opening.starting_weights
    inventory.add(root, uses=[starting, chain.simulator, *_data_of(agent)])
    _add_world(inventory, chain, sources)
    inventory.add(model(f"starting-weights-{short(starting)}", starting))
    for digest in _data(chain, agent):
        inventory.add(data_component(digest, sources.store))
    for stage in chain.stages:
        for name, corpus in stage.corpora.items():
            inventory.add(corpus_component(name, corpus))
    components = [component for component in inventory.components.values() if component is not root]
    services = [*inventory.services.values()]
    body: Part = {
        "version": 1,
        "metadata": _metadata(signed, root),
        "components": [*components],
        **({"services": [*services]} if services else {}),
        "dependencies": inventory.dependencies,
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.7.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_IDS, digest_json(body))}",
        **body,
    }


def _add_world(inventory: Inventory, chain: AgentChain, sources: Sources) -> None:
    manifest = manifest_of(chain.simulator, sources.store)
    add_simulator(inventory, chain.simulator, manifest)
    if manifest and chain.world_model:
        add_stages(inventory, VersionRef.parse(chain.world_model), manifest, sources)
    elif manifest:
        add_unregistered(inventory, manifest, _claimed_data(chain), sources)
    add_bases(inventory, chain, sources)


def _data(chain: AgentChain, agent: Agent) -> Iterator[Digest]:
    """The data sets of the stages, of their base models and of the agent, and those that the signed
    edge names.
    """
    yield from _data_of(agent)
    yield from (stage.data for stage in chain.stages if stage.data)
    yield from (base.data for base in chain.bases if base.data)
    yield from _claimed_data(chain)


def _data_of(agent: Agent) -> list[Digest]:
    return [agent.checkpoint.data] if agent.checkpoint.data else []


def _claimed_data(chain: AgentChain) -> tuple[Digest, ...]:
    return chain.edge.edge.claim.data if chain.edge and chain.edge.edge else ()


def _metadata(signed: SignedEdge | None, root: Part) -> Part:
    tool: Part = {"type": "application", "name": "agentworld", "version": __version__}
    timestamp: Part = {"timestamp": signed.edge.at} if signed else {}
    return {
        **timestamp,
        "lifecycles": [{"phase": "post-build"}],
        "tools": {"components": [tool]},
        "component": root,
    }


def _agent(
    ref: VersionRef,
    chain: AgentChain,
    agent: Agent,
    report: AgentReport | None,
    signed: SignedEdge | None,
) -> Part:
    approach = "reinforcement-learning" if "rl" in agent.checkpoint.recipe else None
    properties = {
        "stage": agent.checkpoint.stage,
        "parameters": agent.checkpoint.num_parameters,
        "recipe": digest_json(agent.checkpoint.recipe) if agent.checkpoint.recipe else None,
        "run": chain.run.id,
        "episodes": chain.run.num_episodes,
        "steps": chain.run.num_steps,
        "grade": chain.edge.grade if chain.edge else None,
        "break": list(chain.problems),
        "incomplete": list(chain.notes),
        **live_properties(chain, report),
        "edge": signed.envelope if signed else None,
    }
    return model(
        ref.name,
        agent.artifact,
        properties,
        ref.version,
        modelCard=model_card(approach, _data_of(agent), live_metrics(report)),
        externalReferences=_attestation(chain, signed) if signed else None,
    )


def _signed_edge(ref: VersionRef, agent: Agent, sources: Sources) -> SignedEdge | None:
    """The edge that the agent was registered with, if its envelope verifies and is about it."""
    signed, evidence = agent.edge, sources.evidence
    if signed is None or evidence is None:
        return None
    try:
        edge = verify_envelope(signed.envelope.encode(), Edge, evidence.trusted)
    except EvidenceError:
        return None
    about = edge.claim.agent, edge.run, edge.claim.artifact
    is_of_agent = about == (ref.name, agent.run, agent.artifact)
    return signed if edge == signed.edge and is_of_agent else None


def _attestation(chain: AgentChain, signed: SignedEdge) -> list[JsonValue]:
    envelope = signed.envelope.encode()
    return [
        {
            "type": "attestation",
            "url": edge_name(chain.run.id, envelope),
            "comment": "the signed edge from the simulator to the agent, in the evidence mirror",
            "hashes": hashes(digest_bytes(envelope)),
        }
    ]
