"""Which agent is in use for what, as it was signed; and where the registry tells otherwise.

The newest use under a name and an alias counts. MLflow's alias mirrors it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentworld.audit.checks.losses import lost_by_any
from agentworld.audit.read.at_time import is_as_of, is_signed_as_of
from agentworld.audit.read.evidence import Evidence, copies_of
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError
from agentworld.ledger.attestations import Attestations
from agentworld.lineage.base import VersionRef
from agentworld.records.agent_use import AgentUse
from agentworld.records.attestation import Attestation
from agentworld.signing.agent_use import AGENT_USES, read_agent_use

_Use = tuple[str, str]
"""A name and an alias."""
_Candidates = dict[_Use, list[AgentUse | None]]
"""What was newest when the registry was asked, or null, and what was signed since."""


def agent_uses(attestations: Attestations, evidence: Evidence, name: str = "") -> list[AgentUse]:
    """All that verify, or all of a name; those of a name and an alias in their order."""
    return _select_verified(
        _read(_load_rows(attestations, f"{AGENT_USES}/{name}/" if name else ""), evidence)
    )


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
    attestations, evidence, at = sources.ledger.attestations, sources.evidence, sources.at
    if evidence is None:
        return
    folder = f"{AGENT_USES}/{ref.name}" if ref else AGENT_USES
    prefix = f"{folder}/" if ref else ""
    copies = copies_of(folder, evidence.mirror)  # before the rows, which are older
    rows, lost_names = _load_rows(attestations, prefix), lost_by_any(attestations, evidence.trusted)
    read = _read(rows, evidence)
    for row, (_, problem) in zip(rows, read, strict=True):
        if problem and is_signed_as_of(row.envelope, at):
            yield problem
    signed = (name for name in copies.keys() - lost_names if is_signed_as_of(copies[name], at))
    yield from _copy_problems(rows, {name: copies[name] for name in sorted(signed)})
    aliases = sources.registry.aliases()
    # Once more: what is used meanwhile is signed before the registry hears of it.
    names = {row.name for row in rows}
    later = [row for row in _load_rows(attestations, prefix) if row.name not in names]
    yield from _in_registry(
        _candidates(_select_verified(read), _select_verified(_read(later, evidence))),
        aliases,
        sources,
        ref,
    )


def _use_of(agent_use: AgentUse) -> _Use:
    return agent_use.name, agent_use.alias


def _load_rows(attestations: Attestations, prefix: str = "") -> list[Attestation]:
    return sorted(attestations.find_under("agent-use", prefix), key=lambda row: str(row.name))


def _select_verified(read: Iterable[tuple[AgentUse | None, str]]) -> list[AgentUse]:
    return [agent_use for agent_use, _ in read if agent_use]


def _read(rows: Sequence[Attestation], evidence: Evidence) -> list[tuple[AgentUse | None, str]]:
    """Each, or why it is none."""
    outcomes: list[tuple[AgentUse | None, str]] = []
    for row in rows:
        try:
            outcomes.append((read_agent_use(row, evidence.trusted), ""))
        except EvidenceError as error:
            outcomes.append((None, f"the use {row.name} does not verify: {error}"))
    return outcomes


def _copy_problems(
    attestations: Sequence[Attestation], copies: Mapping[str, bytes]
) -> Iterator[str]:
    """A row may be older than its copy, for a moment; a copy never is older than its row."""
    rows = {attestation.name: attestation.envelope for attestation in attestations}
    for name, envelope in copies.items():
        if name not in rows:
            yield f"the use {name} is gone from the ledger; restore it"
        elif rows[name] != envelope:
            yield f"the use {name} is another one in the evidence mirror"


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
            yield _mismatch(use, signed_version, version)


def _version(agent_use: AgentUse | None) -> int | None:
    return None if agent_use is None or agent_use.ended else agent_use.version


def _mismatch(use: _Use, signed_version: int | None, version: int | None) -> str:
    name, alias = use
    if version is None:
        return (
            f"the alias {alias} of {name} is gone from the registry, and {name}@{signed_version}"
            " is in use as that; find out who deleted it, or use it again"
        )
    signed = (
        f"{name}@{signed_version} is in use as that" if signed_version else "nothing is in use so"
    )
    return (
        f"the alias {alias} of {name} is version {version} in the registry, and {signed}; find out"
        " who moved it, or use it again"
    )
