"""A version's tags in the registry: the digests by which it is found.

A pure function of the record, so that the audit can compare tags with the record.
"""

from agentworld.lineage.base import Agent, WorldModel
from agentworld.records.base import digest_json


def tags_of(entity: WorldModel | Agent) -> dict[str, str]:
    """The tags without the prefix `agentworld.`."""
    return _of_world_model(entity) if isinstance(entity, WorldModel) else _of_agent(entity)


def _of_world_model(entity: WorldModel) -> dict[str, str]:
    tags = {"kind": "world-model", "artifact": entity.artifact, "report": entity.report}
    tags["data"] = entity.stages[-1].data or ""
    for stage in entity.stages:
        tags[f"{stage.stage}.artifact"] = stage.artifact
        tags[f"{stage.stage}.recipe"] = digest_json(stage.recipe)
        tags[f"{stage.stage}.parents"] = " ".join(stage.parents)
        tags[f"{stage.stage}.data"] = stage.data or ""
    return tags


def _of_agent(entity: Agent) -> dict[str, str]:
    checkpoint = entity.checkpoint
    tags = {"kind": "agent", "artifact": entity.artifact, "run": entity.run}
    tags["simulator"] = checkpoint.simulator or ""
    tags["report"] = entity.report or ""
    tags["parents"] = " ".join(checkpoint.parents)
    tags["recipe"] = digest_json(checkpoint.recipe)
    if entity.edge:
        tags["edge"] = entity.edge_digest or ""
        tags["edge.grade"] = entity.edge.edge.grade
        tags["edge.simulator"] = entity.edge.edge.simulator
    return tags
