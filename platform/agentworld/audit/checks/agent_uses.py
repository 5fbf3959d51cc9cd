"""Which agent is in use for what, as it was signed; and where the registry tells otherwise.

The newest use under a name and an alias counts. MLflow's alias mirrors it.
"""

from collections.abc import Iterator, Mapping, Sequence

from agentworld.audit.checks.mirror import find_rows, statement_problems, verified_rows
from agentworld.audit.checks.registry import differences
from agentworld.audit.read.at_time import is_as_of
from agentworld.audit.read.evidence import Evidence
from agentworld.audit.read.sources import Sources
from agentworld.ledger.attestations import Attestations
from agentworld.lineage.base import VersionRef
from agentworld.records.statements.agent_use import AgentUse

_Use = tuple[str, str]
"""A name and an alias."""
_Candidates = dict[_Use, list[AgentUse | None]]
"""What was newest when the registry was asked, or null, and what was signed since."""


def agent_uses(attestations: Attestations, evidence: Evidence, name: str = "") -> list[AgentUse]:
    """All that verify, or all of a name; those of a name and an alias in their order."""
    rows = sorted(find_rows(AgentUse, attestations, name or None), key=lambda row: row.name)
    return verified_rows(rows, AgentUse, evidence)


def in_use(history: Sequence[AgentUse]) -> list[AgentUse]:
    """The newest of each name and alias, where that was not taken out of use."""
    return [agent_use for agent_use in newest(history).values() if not agent_use.ended]


def newest(history: Sequence[AgentUse]) -> dict[_Use, AgentUse]:
    """By name and alias; what was taken out of use too."""
    return {_use_of(agent_use): agent_use for agent_use in history}


def agent_use_problems(sources: Sources, ref: VersionRef | None = None) -> Iterator[str]:
    """What is not as it was signed, and what the registry tells otherwise; each is a sentence.

    Of all agents; or of one: what was signed of its name, whatever the version, and the aliases
    that mean this version, as it was signed or in the registry.
    """
    if sources.evidence is None:
        return
    attestations, name = sources.ledger.attestations, ref.name if ref else None
    yield from statement_problems(AgentUse, attestations, sources.evidence, sources.at, name)
    yield from registry_problems(sources, ref)


def registry_problems(sources: Sources, ref: VersionRef | None = None) -> Iterator[str]:
    """What the registry tells otherwise, of all agents or of one, as above."""
    attestations, evidence = sources.ledger.attestations, sources.evidence
    if evidence is None:
        return
    name = ref.name if ref else ""
    signed = agent_uses(attestations, evidence, name)
    aliases = sources.registry.aliases()
    # Once more: what is used meanwhile is signed before the registry hears of it.
    later = [use for use in agent_uses(attestations, evidence, name) if use not in signed]
    yield from _in_registry(_candidates(signed, later), aliases, sources, ref)


def _use_of(agent_use: AgentUse) -> _Use:
    return agent_use.name, agent_use.alias


def _candidates(earlier: Sequence[AgentUse], later: Sequence[AgentUse]) -> _Candidates:
    candidates: _Candidates = {use: [agent_use] for use, agent_use in newest(earlier).items()}
    for agent_use in later:
        candidates.setdefault(_use_of(agent_use), [None]).append(agent_use)
    return candidates


def _in_registry(
    signed: _Candidates,
    registry_versions: Mapping[_Use, int],
    sources: Sources,
    ref: VersionRef | None,
) -> Iterator[str]:
    agents = sources.registry.versions(kind="agent")
    names = {ref.name} if ref else {version.ref.name for version in agents}
    # The registry has no history: what is newer than the moment says nothing of it.
    later = {
        (agent.ref.name, agent.ref.version)
        for agent in agents
        if not is_as_of(agent.at, sources.at)
    }
    for use in sorted(signed.keys() | {use for use in registry_versions if use[0] in names}):
        candidates, version = signed.get(use, [None]), registry_versions.get(use)
        signed_version, last = _version(candidates[-1]), candidates[-1]
        if version in map(_version, candidates) or (
            ref and ref.version not in (version, signed_version)
        ):
            continue
        if (use[0], version) not in later and (last is None or is_as_of(last.at, sources.at)):
            alias = f"alias {use[1]}"
            for problem in differences({alias: version}, {alias: signed_version}):
                yield f"{use[0]}: {problem}"


def _version(agent_use: AgentUse | None) -> int | None:
    return None if agent_use is None or agent_use.ended else agent_use.version
