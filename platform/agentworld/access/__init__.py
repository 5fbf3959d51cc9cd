"""Access control: maps a credential to a tenant with roles. No HTTP and no database."""

from agentworld.access.base import Access, Caller, Role

__all__ = ["Access", "Caller", "Role"]
