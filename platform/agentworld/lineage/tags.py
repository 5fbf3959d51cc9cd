"""What a registry's tags say of a version: the digests by which it is searched for.

A pure function of the record, so that whoever compares a tag with the record asks the same one.
"""

from agentworld.lineage.base import Agent, WorldModel
from agentworld.records.base import digest_json


def tags_of(what: WorldModel | Agent) -> dict[str, str]:
    """Without the `agentworld.` that a registry puts before them."""
    return _of_world_model(what) if isinstance(what, WorldModel) else _of_agent(what)


def _of_world_model(what: WorldModel) -> dict[str, str]:
    tags = {"kind": "world-model", "artifact": what.artifact, "report": what.report}
    tags["data"] = what.stages[-1].data or ""
    for stage in what.stages:
        tags[f"{stage.stage}.artifact"] = stage.artifact
        tags[f"{stage.stage}.recipe"] = digest_json(stage.recipe)
        tags[f"{stage.stage}.parents"] = " ".join(stage.parents)
        tags[f"{stage.stage}.data"] = stage.data or ""
    return tags


def _of_agent(what: Agent) -> dict[str, str]:
    checkpoint = what.checkpoint
    tags = {"kind": "agent", "artifact": what.artifact, "run": what.run}
    tags["simulator"] = checkpoint.simulator or ""
    tags["report"] = what.report or ""
    tags["parents"] = " ".join(checkpoint.parents)
    tags["recipe"] = digest_json(checkpoint.recipe)
    if what.edge:
        tags["edge"] = what.edge_digest or ""
        tags["edge.grade"] = what.edge.edge.grade
        tags["edge.simulator"] = what.edge.edge.simulator
    return tags
