"""The authenticated caller, and the protocol of access control."""

from typing import Literal, NamedTuple, Protocol

from agentworld.access.limits import Limits
from agentworld.errors import AccessError
from agentworld.records.run import LOCAL_TENANT

Role = Literal["agent", "operator", "auditor"]
"""The rights of a caller:

    agent     open runs and act in them; read the runs of its own tenant
    operator  read metrics and the state of engines; move aliases
    auditor   read every tenant's runs and episodes; change nothing
"""

ROLES: frozenset[Role] = frozenset(("agent", "operator", "auditor"))


class Caller(NamedTuple):
    """An authenticated caller."""

    tenant: str
    name: str
    roles: frozenset[Role]
    run: str | None = None
    """The run of a run token, which gives access to this run only."""

    def check(self, *roles: Role) -> None:
        """Raises AccessError if the caller has none of these roles."""
        if self.roles.isdisjoint(roles):
            raise AccessError(
                f"{self.name} of tenant {self.tenant} lacks the role {' or '.join(roles)}; use a"
                f" key with that role, as `agentworld api-key new --role {roles[0]}` makes one",
                kind="forbidden",
            )


LOCAL = Caller(LOCAL_TENANT, "local", ROLES)
"""The caller of every request if access control is off."""


class Access(Protocol):
    """Authenticates callers by their credentials."""

    async def caller(self, credential: str | None) -> Caller:
        """The caller of a credential; raises AccessError if it is unknown or missing."""
        ...

    def limits(self, tenant: str) -> Limits:
        """The limits of a tenant."""
        ...

    def run_token(self, run: str, tenant: str) -> str:
        """A token that gives access to this run only."""
        ...
