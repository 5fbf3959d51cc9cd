"""What was registered and the registry does not have, any more."""

from agentworld.audit.sources import Sources
from agentworld.audit.versions import filed, replaced
from agentworld.errors import NotFound
from agentworld.lineage.base import Registry, VersionRef
from agentworld.records.base import Record
from agentworld.records.declaration import Withdrawal
from agentworld.records.step_statement import Registered


class Gone(Record):
    """Versions that nobody declared to be withdrawn, as they were registered."""

    versions: tuple[Registered, ...]

    def withdrawals(self, reason: str, by: str, at: str) -> list[Withdrawal]:
        """One for each."""
        told = {"reason": reason, "by": by, "at": at}
        return [
            Withdrawal(version=each.ref, artifact=each.artifact, registered=each.digest, **told)
            for each in self.versions
        ]


def gone(sources: Sources) -> Gone:
    """Those that are missing, and those whose number the registry gave again."""
    signed = filed(sources).counted
    by_ref = {each.ref: each for each in signed}
    missing = [each for each in by_ref.values() if not _is_there(each, sources.registry)]
    found = {*missing, *replaced(signed, by_ref)}
    return Gone(versions=tuple(each for each in signed if each in found))


def _is_there(told: Registered, registry: Registry) -> bool:
    try:
        registry.version(VersionRef(name=told.registered_as, version=told.version))
    except NotFound:
        return False
    return True
