"""A world without faults: a judge must find nothing in it, until it is spoiled.

Its children are built by the operator's builder, which compares judge and builder.
"""

import copy
from typing import Any

from agentworld.cluster.names import short
from agentworld.cluster.records.simulator import SimulatorSpec
from agentworld.records.simulator import EnginePin
from agentworld_operator.children.engine import children
from agentworld_operator.children.pod import PodSource
from campaigns.operator.place import VERIFIER_IMAGE
from campaigns.operator.snapshot import CHILDREN, Snapshot
from make.simulator import alias, pinned_manifest, simulator

Object = dict[str, Any]

FIRST, OTHER = pinned_manifest("one").digest, pinned_manifest("two").digest


def world() -> Snapshot:
    """A Simulator with two replicas, an idle one, a duplicate of the first, and two aliases."""
    one = _simulator("one", "one", 1, replicas=2)
    idle = _simulator("idle", "two", 2, bounds={"min": 0, "max": 3, "episodesPerReplica": 2})
    rival = _simulator("rival", "one", 3)
    _tell(one, FIRST, 2, ("True", "Serving"), ("True", "Serving"), ("True", "FilesMatch"))
    _tell(idle, OTHER, 0, ("False", "ScaledToZero"), ("True", "Idle"), ("Unknown", "NotYet"))
    conditions = {"Ready": ("False", "SameAsAnother")}
    rival["status"] = _status(4, FIRST, conditions, "one is the same simulator, and so on")
    child_objects = [*_children(one, 2), *_children(idle, 0)]
    reasons = {"stable": "move 1", "trial": "move 2"}
    aliases = {name: _alias(name, reason) for name, reason in reasons.items()}
    return Snapshot(
        simulators={"one": one, "idle": idle, "rival": rival},
        aliases=aliases,
        children={
            kind: {item["metadata"]["name"]: item for item in child_objects if item["kind"] == kind}
            for kind in CHILDREN
        },
        episodes={FIRST: 5},
        rows=[
            _row("stable", "move 1"),
            _row("trial", "move 2"),
            _row("gone", "move 0"),
            _row("gone", None) | {"ended": 1},
        ],
        moves=[
            _move("stable", "move 1", "done"),
            _move("trial", "move 2", "unknown"),
            _move("trial", "move 3", "refused"),
        ],
    )


def _simulator(name: str, seed: str, age: int, **serving: object) -> Object:
    resource = simulator(name, seed, **serving)
    resource["metadata"] |= {
        "uid": f"uid-{name}",
        "namespace": "here",
        "generation": 4,
        "creationTimestamp": f"2026-01-0{age}T00:00:00Z",
    }
    return resource


def _tell(
    resource: Object,
    digest: str,
    replicas: int,
    engine: tuple[str, str],
    ready: tuple[str, str],
    verified: tuple[str, str],
) -> None:
    status = {"replicas": replicas, "readyReplicas": replicas}
    status["openEpisodes"] = 5 if digest == FIRST else 0
    degraded = ("False", "AsWanted")
    conditions = {"Verified": verified, "EngineReady": engine, "Ready": ready, "Degraded": degraded}
    resource["status"] = {**_status(4, digest, conditions), **status}


def _status(
    generation: int, digest: str, types: dict[str, tuple[str, str]], message: str = ""
) -> Object:
    conditions = [
        {"type": type_, "status": status, "reason": reason, "message": message}
        for type_, (status, reason) in types.items()
    ]
    return {"observedGeneration": generation, "digest": digest, "conditions": conditions}


def _children(resource: Object, replicas: int) -> list[Object]:
    spec = SimulatorSpec.model_validate(resource["spec"])
    manifest, serving = spec.identity.manifest, spec.serving
    assert manifest
    assert serving.weights
    assert isinstance(manifest.engine, EnginePin)
    source_fields = manifest.engine, serving, serving.weights, VERIFIER_IMAGE
    child_objects = children(
        PodSource(manifest.digest, manifest, *source_fields), resource, replicas
    )
    child_objects[2]["status"] = {"readyReplicas": replicas}
    assert short(manifest.digest) in child_objects[0]["metadata"]["name"]
    return copy.deepcopy(child_objects)


def _alias(name: str, reason: str) -> Object:
    resource = alias("one", name, override={"reason": reason})
    resource["metadata"] |= {"uid": f"uid-{name}", "generation": 2}
    conditions = {"Resolved": ("True", "Found"), "Recorded": ("True", "AsAsked")}
    resource["status"] = _status(2, FIRST, conditions)
    return resource


def _row(name: str, reason: str | None) -> Object:
    row = {"alias": name, "simulator": FIRST, "canary": None, "canary_percent": None}
    request_fields = {"override": reason, "set_by": "admin", "request": f"uid-{name}/2"}
    row |= {"at": "2026-02-01T00:00:00+00:00"}
    return row | request_fields | {"ended": 0}


def _move(name: str, reason: str, outcome: str) -> Object:
    return {"alias": name, "reason": reason, "outcome": outcome}
