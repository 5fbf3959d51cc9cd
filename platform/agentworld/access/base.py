"""Who calls, and what a protocol needs to know of them."""

from typing import Literal, NamedTuple, Protocol

from agentworld.access.limits import Limits
from agentworld.errors import AccessError
from agentworld.records.run import LOCAL_TENANT

Role = Literal["agent", "operator", "auditor"]
"""What somebody may do:

    agent     open runs and act in them, and see the own tenant's
    operator  see how the service is, by its metrics and engines, and move aliases
    auditor   read every tenant's runs and episodes, and change nothing
"""

ROLES: frozenset[Role] = frozenset(("agent", "operator", "auditor"))


class Caller(NamedTuple):
    """Somebody whose credential was believed."""

    tenant: str
    name: str
    roles: frozenset[Role]
    run: str | None = None
    """Who comes with a run's token sees that run alone."""

    def check(self, *roles: Role) -> None:
        """Raises AccessError for who has none of these roles."""
        if self.roles.isdisjoint(roles):
            raise AccessError(
                f"{self.name} of tenant {self.tenant} is no {' and no '.join(roles)}; use a key"
                f" with that role, as `agentworld api-key new --role {roles[0]}` makes one",
                kind="forbidden",
            )


LOCAL = Caller(LOCAL_TENANT, "local", ROLES)
"""Everybody, where it was chosen that nobody is asked."""


class Access(Protocol):
    """Finds who comes with a credential."""

    async def caller(self, credential: str | None) -> Caller:
        """Raises AccessError for one that nobody gave out, and where there is none."""
        ...

    def limits(self, tenant: str) -> Limits:
        """What a tenant may use."""
        ...

    def run_token(self, run: str, tenant: str) -> str:
        """What opens this run alone."""
        ...
