"""Who is there: a credential becomes a tenant with roles, or nothing. No HTTP and no database."""

from agentworld.access.base import Access, Caller, Role

__all__ = ["Access", "Caller", "Role"]
