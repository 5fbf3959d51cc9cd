"""Which agent is in use for what, as it was signed; and where the registry tells otherwise.

The newest deployment of a name and an alias counts. MLflow's alias mirrors it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentworld.audit.checks.losses import lost_by_any
from agentworld.audit.read.at_time import is_signed_then, is_then
from agentworld.audit.read.evidence import Evidence, copies_of
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError
from agentworld.ledger.attestations import Attestations
from agentworld.lineage.base import VersionRef
from agentworld.records.attestation import Attestation
from agentworld.records.deployment import Deployment
from agentworld.signing.deployment import DEPLOYMENTS, read_deployment

_Use = tuple[str, str]
"""A name and an alias."""
_Candidates = dict[_Use, list[Deployment | None]]
"""What was newest when the registry was asked, or null, and what was signed since."""


def deployments(told: Attestations, evidence: Evidence, name: str = "") -> list[Deployment]:
    """All that verify, or all of a name; those of a name and an alias in their order."""
    return _made(_read(_kept(told, f"{DEPLOYMENTS}/{name}/" if name else ""), evidence))


def in_use(made: Sequence[Deployment]) -> list[Deployment]:
    """The newest of each name and alias, where that was not taken out of use."""
    return [each for each in newest(made).values() if not each.ended]


def newest(made: Sequence[Deployment]) -> dict[_Use, Deployment]:
    """By name and alias; what was taken out of use too."""
    return {_use_of(each): each for each in made}


def deployment_problems(sources: Sources, of: VersionRef | None = None) -> Iterator[str]:
    """What is not as it was signed, and what the registry tells otherwise; each is a sentence.

    Of all agents; or of one: what was signed of its name, whatever the version, and the aliases
    that mean this version, as it was signed or in the registry.
    """
    told, evidence, at = sources.ledger.attestations, sources.evidence, sources.at
    if evidence is None:
        return
    folder = f"{DEPLOYMENTS}/{of.name}" if of else DEPLOYMENTS
    under = f"{folder}/" if of else ""
    copies = copies_of(folder, evidence.second_store)  # before the rows, which are older
    kept, lost = _kept(told, under), lost_by_any(told, evidence.trusted)
    read = _read(kept, evidence)
    for each, (_, problem) in zip(kept, read, strict=True):
        if problem and is_signed_then(each.envelope, at):
            yield problem
    signed = (name for name in copies.keys() - lost if is_signed_then(copies[name], at))
    yield from _gone(kept, {name: copies[name] for name in sorted(signed)})
    aliases = sources.registry.aliases()
    # Once more: what is used meanwhile is signed before the registry hears of it.
    names = {each.name for each in kept}
    since = [each for each in _kept(told, under) if each.name not in names]
    yield from _in_registry(
        _candidates(_made(read), _made(_read(since, evidence))), aliases, sources, of
    )


def _use_of(made: Deployment) -> _Use:
    return made.name, made.alias


def _kept(told: Attestations, under: str = "") -> list[Attestation]:
    return sorted(told.find_under("deployment", under), key=lambda each: str(each.name))


def _made(read: Iterable[tuple[Deployment | None, str]]) -> list[Deployment]:
    return [made for made, _ in read if made]


def _read(kept: Sequence[Attestation], evidence: Evidence) -> list[tuple[Deployment | None, str]]:
    """Each, or why it is none."""
    found: list[tuple[Deployment | None, str]] = []
    for each in kept:
        try:
            found.append((read_deployment(each, evidence.trusted), ""))
        except EvidenceError as error:
            found.append((None, f"the use {each.name} does not verify: {error}"))
    return found


def _gone(kept: Sequence[Attestation], copies: Mapping[str, bytes]) -> Iterator[str]:
    """A row may be older than its copy, for a moment; a copy never is older than its row."""
    rows = {each.name: each.envelope for each in kept}
    for name, envelope in copies.items():
        if name not in rows:
            yield f"the use {name} is gone from the ledger; restore it"
        elif rows[name] != envelope:
            yield f"the use {name} is another one in the second store"


def _candidates(before: Sequence[Deployment], since: Sequence[Deployment]) -> _Candidates:
    found: _Candidates = {use: [made] for use, made in newest(before).items()}
    for made in since:
        found.setdefault(_use_of(made), [None]).append(made)
    return found


def _in_registry(
    signed: _Candidates, found: Mapping[_Use, int], sources: Sources, of: VersionRef | None
) -> Iterator[str]:
    agents = sources.registry.versions(kind="agent")
    ours = {of.name} if of else {version.ref.name for version in agents}
    # The registry has no history: what is newer than the moment says nothing of it.
    later = {
        (each.ref.name, each.ref.version) for each in agents if not is_then(each.at, sources.at)
    }
    for use in sorted(signed.keys() | {each for each in found if each[0] in ours}):
        told, version = signed.get(use, [None]), found.get(use)
        wanted, last = _version(told[-1]), told[-1]
        if version in map(_version, told) or (of and of.version not in (version, wanted)):
            continue
        if (use[0], version) not in later and (last is None or is_then(last.at, sources.at)):
            yield _mismatch(use, wanted, version)


def _version(made: Deployment | None) -> int | None:
    return None if made is None or made.ended else made.version


def _mismatch(use: _Use, wanted: int | None, version: int | None) -> str:
    name, alias = use
    if version is None:
        return (
            f"the alias {alias} of {name} is gone from the registry, and {name}@{wanted} is in"
            " use as that; find out who deleted it, or use it again"
        )
    signed = f"{name}@{wanted} is in use as that" if wanted else "nothing is in use so"
    return (
        f"the alias {alias} of {name} is version {version} in the registry, and {signed}; find out"
        " who moved it, or use it again"
    )
