"""Checks that the registry, a mirror, has agents' aliases as they were signed."""

from collections.abc import Iterator, Mapping, Sequence

from agentworld.audit.checks.alias_history import agent_changes
from agentworld.audit.checks.mirror import statement_problems
from agentworld.audit.checks.registry import differences
from agentworld.audit.read.evidence import as_of
from agentworld.audit.read.sources import Sources
from agentworld.lineage.base import VersionRef
from agentworld.records.statements.alias import AliasChange, AliasEntry, split_alias

_Candidates = dict[str, list[AliasChange | None]]
"""By alias: the newest change (or null) when the registry was read, and those signed since."""


def agent_problems(ref: VersionRef, sources: Sources) -> Iterator[str]:
    """Problems of an agent's aliases, of any version, and where the registry differs for this
    version; a sentence each.
    """
    if sources.evidence:
        attestations, of = sources.ledger.attestations, f"{ref.name}@"
        yield from statement_problems(AliasEntry, attestations, sources.evidence, of)
    yield from registry_problems(sources, ref)


def registry_problems(sources: Sources, ref: VersionRef | None = None) -> Iterator[str]:
    """Where the registry differs, a sentence each.

    Covers all agents, or the aliases of one version, by signature or in the registry.
    """
    if sources.evidence is None:
        return
    # Current changes: a later move explains why the registry differs from the state at the time
    # asked about.
    attestations, evidence = sources.ledger.attestations, sources.evidence.of_now
    name = ref.name if ref else ""
    signed = agent_changes(attestations, evidence, name)
    aliases = {"@".join(names): version for names, version in sources.registry.aliases().items()}
    # Read again: an alias that moves in the meantime is signed before the registry is updated.
    newest = agent_changes(attestations, evidence, name)
    candidates = _candidates(signed, [change for change in newest if change not in signed])
    yield from _in_registry(candidates, aliases, sources, ref)


def _candidates(earlier: Sequence[AliasChange], later: Sequence[AliasChange]) -> _Candidates:
    candidates: _Candidates = {change.alias: [change] for change in earlier}
    for change in later:
        candidates.setdefault(change.alias, [None]).append(change)
    return candidates


def _in_registry(
    signed: _Candidates,
    registry_versions: Mapping[str, int],
    sources: Sources,
    ref: VersionRef | None,
) -> Iterator[str]:
    agents = sources.registry.versions(kind="agent")
    names = {ref.name} if ref else {version.ref.name for version in agents}
    # The registry has no history: an alias that moved after the time asked about cannot be
    # compared.
    refs = {(agent.ref.name, agent.ref.version) for agent in agents}
    later = refs - {(agent.ref.name, agent.ref.version) for agent in as_of(agents, sources.at)}
    in_registry = {alias for alias in registry_versions if split_alias(alias)[0] in names}
    for alias in sorted(signed.keys() | in_registry):
        candidates, version = signed.get(alias, [None]), registry_versions.get(alias)
        signed_version, last = _version(candidates[-1]), candidates[-1]
        if version in map(_version, candidates) or (
            ref and ref.version not in (version, signed_version)
        ):
            continue
        name, label = split_alias(alias)
        if (name, version) not in later and (last is None or as_of([last], sources.at)):
            fact = f"alias {label}"
            for problem in differences({fact: version}, {fact: signed_version}):
                yield f"{name}: {problem}"


def _version(change: AliasChange | None) -> int | None:
    return None if change is None or change.agent is None or change.ended else change.agent.version
