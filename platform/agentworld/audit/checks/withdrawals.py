"""Registered versions that the registry no longer has."""

from collections.abc import Collection, Sequence

from agentworld.audit.checks.mirror import statement_problems
from agentworld.audit.checks.statements import registrations
from agentworld.audit.checks.versions import find_replaced
from agentworld.audit.read.sources import Sources
from agentworld.errors import EvidenceError, InputError, NotFound
from agentworld.lineage.base import Registry, VersionRef
from agentworld.records.base import Record
from agentworld.records.garbled import reading
from agentworld.records.statements.base import statement_kinds
from agentworld.records.statements.registration import RegisteredVersion
from agentworld.records.statements.withdrawal import Withdrawal


class MissingVersions(Record):
    """Missing versions without a declared withdrawal, as they were registered."""

    versions: tuple[RegisteredVersion, ...]

    def withdrawals(self, reason: str, by: str, at: str) -> list[Withdrawal]:
        """One withdrawal for each version."""
        fields = {"reason": reason, "by": by, "at": at}
        return [
            Withdrawal(
                version=version.ref, artifact=version.artifact, registered=version.digest, **fields
            )
            for version in self.versions
        ]


def missing_versions(sources: Sources, refs: Collection[str] = ()) -> MissingVersions:
    """Versions that are missing or whose number the registry assigned again; all, or of `refs`.

    Raises EvidenceError if signed statements about versions do not verify; NotFound if one of
    `refs` is not missing; InputError without a step key, and if the registry has none of the
    versions, because it may be the wrong one.
    """
    signed = _read_signed(sources)
    registered_refs = _registered_refs(signed, sources.registry)
    if signed and not registered_refs and not refs:
        raise InputError(
            f"the registry has none of {len(signed)} registered versions; check its address"
            " (MLFLOW_TRACKING_URI), or name each missing version"
        )
    lost = _lost(signed, registered_refs)
    lost_refs = {registration.ref for registration in lost}
    for ref in refs:
        if ref not in lost_refs:
            raise NotFound(f"{ref} is not a missing version; name one that is, or none")
    selection = refs or lost_refs
    return MissingVersions(
        versions=tuple(
            registration
            for registration in signed
            if registration in lost and registration.ref in selection
        )
    )


def _lost(
    signed: Sequence[RegisteredVersion], registered_refs: Collection[str]
) -> set[RegisteredVersion]:
    """Adds the statements that repeat a registration or would replace it."""
    by_ref = {registration.ref: registration for registration in signed}
    lost = {registration for registration in signed if registration.ref not in registered_refs} | {
        *find_replaced(signed, by_ref)
    }
    records = {(registration.registered_as, registration.record) for registration in lost}
    same = {
        registration
        for registration in signed
        if (registration.registered_as, registration.record) in records
    }
    return lost | {
        registration for registration in same if by_ref[registration.ref] is not registration
    }


def _read_signed(sources: Sources) -> Sequence[RegisteredVersion]:
    attestations, evidence = sources.ledger.attestations, sources.evidence
    if evidence is None or not evidence.step_keys:
        raise InputError(
            "no step key, which signs registrations, is trusted here; name a store or keys"
            " (AGENTWORLD_KEYS) that have one"
        )
    with reading("the ledger's record of its versions"):
        kinds = statement_kinds().values()
        for kind in (kind for kind in kinds if kind.about == "version"):
            for problem in statement_problems(kind, attestations, evidence):
                raise EvidenceError(f"{problem}; see `agentworld audit verify`")
        return registrations(attestations, evidence).counted


def _registered_refs(signed: Sequence[RegisteredVersion], registry: Registry) -> set[str]:
    """Finds them by a search, and singly if the search misses one: it may have lost its tags."""
    refs = {str(version.ref) for version in registry.versions()}
    for registration in signed:
        if registration.ref not in refs and _has(registration, registry):
            refs.add(registration.ref)
    return refs


def _has(statement: RegisteredVersion, registry: Registry) -> bool:
    try:
        registry.version(VersionRef(name=statement.registered_as, version=statement.version))
    except NotFound:
        return False
    return True
