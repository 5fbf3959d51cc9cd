"""An agent with a complete lineage, and its bill of materials, validated against the schema."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import make.agent
import make.datasets
import make.statement
from agentworld.audit.export.cyclonedx.bill import bill_of_materials
from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import WorldModel
from agentworld.lineage.memory import MemoryRegistry
from agentworld.storage.datasets import StoredDataSet
from make import records
from make.template import copied

BASE, ADDRESS = records.digest("base"), "hf://Qwen/Qwen3-0.6B@c1899de"
SERVED, REWARD = records.digest("artifact of rl"), records.digest("reward")
PREFIX = "agentworld:"


class BilledAgent(NamedTuple):
    """An agent with a complete lineage."""

    scene: make.agent.RegisteredAgent
    data: StoredDataSet

    @property
    def sources(self) -> Sources:
        sources = self.scene.sources
        return sources._replace(step_keys=sources.evidence.step_keys or {})

    @property
    def bill(self) -> dict[str, Any]:
        return checked(bill_of_materials(self.scene.ref, self.sources))


def world(data: str, **cpt_fields: object) -> WorldModel:
    cpt = records.checkpoint("cpt", data=data, **cpt_fields)
    fields = {"data": data, "parents": [cpt.artifact], "reward_model": REWARD}
    return WorldModel(stages=(cpt, records.checkpoint("rl", **fields)), report=BASE)


def build(store: Path) -> BilledAgent:
    return copied(_build, store)


def _build(store: Path) -> BilledAgent:
    data, registry = make.datasets.stored(store), MemoryRegistry()
    (store / "world").mkdir()
    world_model = world(data.digest, parents=[BASE], base=ADDRESS)
    agent = make.agent.registered(store, registry, data=(data.digest,))
    make.statement.registered("world", world_model, store / "world", registry, store)
    agent.validated(agent.simulator.digest)
    return BilledAgent(agent, data)


def checked(bill: dict[str, Any]) -> dict[str, Any]:
    """A bill that is valid by the schema of CycloneDX 1.7, and whose references can be resolved."""
    validator = JsonStrictValidator(SchemaVersion.V1_7)
    errors = validator.validate_str(json.dumps(bill), all_errors=True) or ()
    assert [(list(error.data.absolute_path), error.data.message[:200]) for error in errors] == []
    parts = [bill["metadata"]["component"], *bill["components"], *bill.get("services", ())]
    references = [part["bom-ref"] for part in parts]
    assert len(references) == len(set(references))
    for dependency in bill["dependencies"]:
        assert {dependency["ref"], *dependency["dependsOn"]} <= set(references)
    return bill


def parts_of(bill: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["bom-ref"]: item for item in [bill["metadata"]["component"], *bill["components"]]}


def properties(part: dict[str, Any]) -> dict[str, str]:
    names = [item["name"] for item in part["properties"]]
    assert all(name.startswith(PREFIX) for name in names)
    return {item["name"].removeprefix(PREFIX): item["value"] for item in part["properties"]}


def uses(bill: dict[str, Any]) -> dict[str, list[str]]:
    return {item["ref"]: item["dependsOn"] for item in bill["dependencies"]}
