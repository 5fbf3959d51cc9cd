"""The differences between two agents, from their weights back to their data."""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from agentworld.audit.read.sources import Sources, manifest_of
from agentworld.lineage.base import VersionRef
from agentworld.records.base import Record
from agentworld.records.checkpoint import Checkpoint

_Facts = Iterator[tuple[str, JsonValue]]


class Difference(Record):
    """One difference."""

    what: str
    """Its dotted path in the lineage: `simulator.sampling.temperature`."""
    first: JsonValue
    second: JsonValue
    """Null if there is no value."""


class AgentsDifference(Record):
    """The answer to: what differs between these two agents?"""

    first: str
    second: str
    differences: tuple[Difference, ...]
    """The agents' own differences first, their data last; empty if their lineages are equal."""
    at: str | None = None
    """The time asked about; null is now."""


def audit_diff(first: VersionRef, second: VersionRef, sources: Sources) -> AgentsDifference:
    """Compares by the registry, the ledger and the manifests; raises NotFound."""
    first_facts, second_facts = dict(_facts(first, sources)), dict(_facts(second, sources))
    return AgentsDifference(
        first=str(first),
        second=str(second),
        differences=tuple(
            Difference(what=name, first=first_facts.get(name), second=second_facts.get(name))
            for name in _in_order([*first_facts, *second_facts])
            if first_facts.get(name) != second_facts.get(name)
        ),
        at=sources.moment,
    )


def _in_order(names: Sequence[str]) -> list[str]:
    """Each name once, grouped by its first part."""
    parts = list(dict.fromkeys(name.partition(".")[0] for name in names))
    return sorted(dict.fromkeys(names), key=lambda name: parts.index(name.partition(".")[0]))


def _facts(ref: VersionRef, sources: Sources) -> _Facts:
    agent = sources.agent(ref)
    run = sources.run(agent.run)
    manifest = manifest_of(run.simulator, sources.store)
    yield from _of_stage("agent", agent.checkpoint)
    yield "agent.starting_weights", run.opening.starting_weights
    yield "agent.live_validation", agent.report
    yield "run.episodes", run.num_episodes
    yield "run.steps", run.num_steps
    yield "simulator", run.simulator
    if manifest:
        fields = manifest.model_dump(mode="json", exclude={"files"})  # the artifact names them
        yield from _leaves("simulator", fields)
    version, world_model = sources.first_world_model(sources.world_models_of(manifest))
    yield "world_model", str(version) if version else None
    stages = world_model.stages if world_model else ()
    for stage in reversed(stages):
        yield from _of_stage(stage.stage, stage)
    yield "base", ", ".join(stages[0].parents) or None if stages else None
    yield "data", stages[-1].data if stages else None


def _of_stage(name: str, checkpoint: Checkpoint) -> _Facts:
    yield f"{name}.artifact", checkpoint.artifact
    yield f"{name}.reward_model", checkpoint.reward_model
    for corpus, use in checkpoint.corpora.items():
        yield f"{name}.corpus.{corpus}", use.content
    yield from _leaves(f"{name}.recipe", checkpoint.model_dump(mode="json")["recipe"])


def _leaves(name: str, value: JsonValue) -> _Facts:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    else:
        yield name, value
