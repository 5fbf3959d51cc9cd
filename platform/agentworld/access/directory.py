"""The access file: tenants with their keys, service accounts and limits."""

import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import Field, StringConstraints, ValidationError, model_validator

from agentworld.access.base import Caller, Role
from agentworld.access.limits import Limits
from agentworld.errors import InputError
from agentworld.records.base import Label, Record
from agentworld.records.file import read_regular

_Account = Annotated[str, StringConstraints(pattern=r"^[a-z0-9.-]+/[a-z0-9.-]+$")]
_Roles = Annotated[frozenset[Role], Field(min_length=1)]
_SAFE_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}|[a-z0-9.-]+/[a-z0-9.-]+|[a-z]+(_[a-z]+)+")


class Key(Record):
    """An API key."""

    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    """The digest that `agentworld api-key new` prints; the key itself is not stored."""
    roles: _Roles


class Tenant(Record):
    """A tenant: its credentials and its limits."""

    keys: dict[Label, Key] = {}
    """API keys by name; runs record the name as `opened_by`."""
    service_accounts: dict[_Account, _Roles] = {}
    """Kubernetes service accounts, as NAMESPACE/NAME, with their roles."""
    limits: Limits = Limits()


class Directory(Record):
    """The content of the access file."""

    tenants: dict[Label, Tenant]

    @model_validator(mode="after")
    def _means_one(self) -> Self:
        """Raises ValueError if two tenants share a key or an account, which would give access
        across tenants.
        """
        for kind, values in (("key", self._keys()), ("service account", self._accounts())):
            first: dict[str, str] = {}
            for value, location in values:
                if first.setdefault(value, location) != location:
                    raise ValueError(
                        f"{first[value]} and {location} share one {kind}; remove it from one"
                    )
        return self

    @classmethod
    def load(cls, path: Path) -> Self:
        """Raises InputError with the first problem, without values, which may be keys."""
        try:
            text = read_regular(path).decode()
            return cls.model_validate(_UniqueKeyLoader(text).get_single_data())
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise InputError(
                f"the access file {path} is wrong: {_reason(error)}; correct it"
            ) from None

    def callers_by_key(self) -> dict[str, Caller]:
        """The callers by the digest of their API key."""
        return {
            key.sha256: Caller(tenant, f"{tenant}/{name}", key.roles)
            for tenant, members in self.tenants.items()
            for name, key in members.keys.items()
        }

    def callers_by_account(self) -> dict[str, Caller]:
        """The callers by the name of their service account."""
        return {
            account: Caller(tenant, account, roles)
            for tenant, members in self.tenants.items()
            for account, roles in members.service_accounts.items()
        }

    def _keys(self) -> Iterator[tuple[str, str]]:
        for tenant, members in self.tenants.items():
            yield from ((key.sha256, f"{tenant}/{name}") for name, key in members.keys.items())

    def _accounts(self) -> Iterator[tuple[str, str]]:
        for tenant, members in self.tenants.items():
            yield from ((account, tenant) for account in members.service_accounts)


class _UniqueKeyLoader(yaml.SafeLoader):
    """Refuses duplicate keys, of which YAML silently takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
        if len(names) < len(node.value):
            raise yaml.constructor.ConstructorError(problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def _reason(error: Exception) -> str:
    match error:
        case OSError(strerror=reason):
            return f"it cannot be read ({reason})"
        case ValidationError():
            first = error.errors(include_url=False, include_input=False)[0]
            location = ".".join(map(_location_part, first["loc"])) or "the whole"
            return f"{location}: {first['msg']}"
        case yaml.MarkedYAMLError(problem_mark=yaml.Mark(line=line)):
            return f"line {line + 1} is not YAML, or repeats a key"
    return f"it is not YAML ({type(error).__name__})"


def _location_part(part: str | int) -> str:
    """The name of a field in an error; hides a text that may be an API key."""
    return str(part) if _SAFE_NAME.fullmatch(str(part)) else "(no name)"
