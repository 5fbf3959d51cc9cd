"""Builds and reads the cluster's objects for the step `deploy`. Pure."""

import json
from pathlib import Path

from agentworld.cluster.api_resources import Object, type_fields
from agentworld.cluster.names import MOVED_BY, part_labels
from agentworld.cluster.records.alias import AliasSpec
from agentworld.cluster.records.serving import Weights
from agentworld.cluster.records.view import ConditionView, SimulatorView
from agentworld.errors import InputError, PipelineError
from agentworld.records.base import Digest
from agentworld.records.garbled import redact
from agentworld.records.simulator import EnginePin, SimulatorManifest
from agentworld.steps.deploy import AliasTarget
from agentworld.storage.working_copy import address_of, is_bucket
from agentworld_pipelines.deployment import Target

_DIGITS = 12
_PULL_FAILURES = ("InvalidImageName", "ErrImageNeverPull")
"""Reasons that waiting does not correct; an unreachable registry, or a full pool, may recover."""


def simulator_name(alias_target: AliasTarget) -> str:
    """The name of the created Simulator."""
    return f"{alias_target.alias}-{alias_target.simulator.digest.removeprefix('sha256:')[:_DIGITS]}"


def check_servable(manifest: SimulatorManifest) -> None:
    """Raises InputError for a simulator that an operator would refuse."""
    engine = manifest.engine
    if not isinstance(engine, EnginePin) or engine.kind != "vllm":
        raise InputError(
            f"the simulator pins {engine.kind}, which cannot prove what it serves; set engine.kind"
            " in the recipe to vllm"
        )
    if engine.image is None:
        raise InputError(
            "the simulator pins an environment and no container image; set AGENTWORLD_ENGINE_IMAGE"
            " where the step simulate runs"
        )


def simulator(alias_target: AliasTarget, target: Target, name: str) -> Object:
    """The Simulator for the operator."""
    labels = part_labels(
        "agentworld-simulator", "agentworld-pipelines", instance=alias_target.alias
    )
    serving = target.deployment.serving_of(_weights(target, alias_target))
    return {
        **type_fields("Simulator"),
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "identity": {"manifest": json.loads(alias_target.simulator.manifest.canonical)},
            # Fields that a deployment does not set are left to other managers.
            "serving": serving.model_dump(mode="json", exclude_unset=True, exclude_none=True),
        },
    }


def alias(alias_target: AliasTarget, name: str) -> Object:
    """The changed alias; an override of an earlier move is removed."""
    spec = AliasSpec(
        simulator=name,
        gate=alias_target.conditions.gate,
        report=alias_target.conditions.report,
        override=None,
    )
    return {
        **type_fields("SimulatorAlias"),
        "metadata": {"name": alias_target.alias, "annotations": {MOVED_BY: alias_target.key}},
        "spec": spec.model_dump(mode="json", exclude_unset=True),
    }


def moved_by(resource: Object | None) -> str | None:
    """The step that moved an alias last."""
    key: str | None = ((resource or {}).get("metadata", {}).get("annotations") or {}).get(MOVED_BY)
    return key


def conditions(simulator: SimulatorView) -> dict[str, ConditionView]:
    """The conditions of the current generation; empty before the operator has seen it."""
    metadata, status = simulator.metadata, simulator.status
    if status.observed_generation != metadata.generation:
        return {}
    return {condition.type: condition for condition in status.conditions}


def is_ready(simulator: SimulatorView, digest: Digest) -> bool:
    """Whether runs can be opened with a Simulator; raises PipelineError if they never will be."""
    conditions_by_type, name = conditions(simulator), simulator.metadata.name
    if not conditions_by_type:
        return False
    verified, degraded = conditions_by_type.get("Verified"), conditions_by_type.get("Degraded")
    if verified and verified.status == "False":
        raise PipelineError(f"Simulator {name} is not served: {verified}")
    if degraded and degraded.status == "True" and degraded.reason in _PULL_FAILURES:
        raise PipelineError(f"Simulator {name} never starts: {degraded}")
    if simulator.status.digest != digest:
        raise PipelineError(
            f"Simulator {name} is {simulator.status.digest} in the cluster and {digest} here;"
            " install the operator of this release"
        )
    ready = conditions_by_type.get("Ready")
    return ready is not None and ready.status == "True"


def _weights(target: Target, alias_target: AliasTarget) -> Weights:
    """Where the operator finds the model's files; raises InputError if it could not."""
    claim, secret = target.deployment.claim, target.deployment.secret
    model = alias_target.simulator.model.resolve()
    if is_bucket(address := address_of(str(model))):
        if claim:
            raise InputError(
                f"{redact(address)} is in a bucket, and deploy.claim of the placement is {claim};"
                " take the claim out, or name a store on it"
            )
        return Weights(url=address, secret=secret, cache=target.deployment.cache)
    if not claim:
        raise InputError(
            f"{model} is in no bucket; name its claim as deploy.claim of the placement"
        )
    assert target.mounted  # not null, because a claim is named
    mounted = Path(target.mounted).resolve()
    if not model.is_relative_to(mounted):
        raise InputError(
            f"{model} is not on the claim {claim}, which is mounted at {mounted}; name a store"
            " there"
        )
    return Weights(claim=claim, path=model.relative_to(mounted).as_posix())
