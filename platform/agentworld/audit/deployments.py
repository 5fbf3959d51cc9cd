"""Which agent is in use for what, as it was signed; and where the registry tells otherwise.

The newest deployment of a name and an alias counts. MLflow's alias mirrors it.
"""

from collections.abc import Iterator, Mapping, Sequence

from agentworld.audit.evidence import Evidence, copies_of
from agentworld.audit.lost import lost_by_any
from agentworld.errors import EvidenceError
from agentworld.evidence.deployment import DEPLOYMENTS, read_deployment
from agentworld.ledger.attestations import Attestations
from agentworld.lineage.base import Registry
from agentworld.records.attestation import Attestation
from agentworld.records.deployment import Deployment


def deployments(told: Attestations, evidence: Evidence) -> list[Deployment]:
    """All that verify, those of a name and an alias in their order."""
    return [made for made, _ in _read(_kept(told), evidence) if made]


def in_use(made: Sequence[Deployment]) -> list[Deployment]:
    """The newest of each name and alias, where that was not taken out of use."""
    return [each for each in newest(made).values() if not each.ended]


def newest(made: Sequence[Deployment]) -> dict[tuple[str, str], Deployment]:
    """By name and alias; what was taken out of use too."""
    return {(each.name, each.alias): each for each in made}


def deployment_problems(
    told: Attestations, evidence: Evidence, registry: Registry
) -> Iterator[str]:
    """What is not as it was signed, and what the registry tells otherwise; each is a sentence."""
    copies = copies_of(DEPLOYMENTS, evidence.second_store)  # before the rows, which are older
    kept, lost = _kept(told), lost_by_any(told, evidence.trusted)
    read = _read(kept, evidence)
    made = [each for each, _ in read if each]
    yield from (problem for _, problem in read if problem)
    yield from _gone(kept, {name: copies[name] for name in sorted(copies.keys() - lost)})
    yield from _in_registry(newest(made), registry)


def _kept(told: Attestations) -> list[Attestation]:
    return sorted(told.find("deployment"), key=lambda each: each.name)


def _read(kept: Sequence[Attestation], evidence: Evidence) -> list[tuple[Deployment | None, str]]:
    """Each, or why it is none."""
    found: list[tuple[Deployment | None, str]] = []
    for each in kept:
        try:
            found.append((read_deployment(each, evidence.trusted), ""))
        except EvidenceError as error:
            found.append((None, f"the deployment {each.name} does not verify: {error}"))
    return found


def _gone(kept: Sequence[Attestation], copies: Mapping[str, bytes]) -> Iterator[str]:
    """A row may be older than its copy, for a moment; a copy never is older than its row."""
    rows = {each.name: each.envelope for each in kept}
    for name, envelope in copies.items():
        if name not in rows:
            yield f"the deployment {name} is gone from the ledger; restore it"
        elif rows[name] != envelope:
            yield f"the deployment {name} is another one in the second store"


def _in_registry(signed: Mapping[tuple[str, str], Deployment], registry: Registry) -> Iterator[str]:
    ours = {version.ref.name for version in registry.versions(kind="agent")}
    found = {
        known: version
        for known, version in registry.aliases().items()
        if known in signed or known[0] in ours
    }
    for known in sorted(signed.keys() | found.keys()):
        name, alias = known
        last, version = signed.get(known), found.get(known)
        wanted = None if last is None or last.ended else last.version
        if version == wanted:
            continue
        if version is None:
            yield (
                f"the alias {alias} of {name} is gone from the registry, and {name}@{wanted} is in"
                " use as that; find out who deleted it, or use it again"
            )
        else:
            signed_so = f"{name}@{wanted} is in use as that" if wanted else "nothing is in use so"
            yield (
                f"the alias {alias} of {name} is version {version} in the registry, and"
                f" {signed_so}; find out who moved it, or use it again"
            )
