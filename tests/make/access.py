"""Two tenants and an auditor, with their API keys."""

import json
from pathlib import Path

from agentworld.access.checked import CheckedAccess
from agentworld.access.key import PREFIX, key_digest
from agentworld.access.reloaded import ReloadedAccess
from agentworld.access.run_token import RunTokens

TOKENS = RunTokens(b"a secret of these tests")

ROLES = {
    "acme": {"agent": ["agent"], "second": ["agent"], "operator": ["operator"]},
    "rival": {"agent": ["agent"]},
    "office": {"auditor": ["auditor"], "both": ["auditor", "agent"]},
}


def key(name: str) -> str:
    """The key of TENANT-ROLE; for other callers, a key that is not in the file."""
    return PREFIX + key_digest(name)[:43]


def bearer(name: str) -> str:
    return f"Bearer {key(name)}"


def access_file(folder: Path, without: str = "", **limits: int) -> Path:
    """Writes the access file without this tenant, with these limits for each other tenant."""
    tenants = {
        tenant: {
            "keys": {
                role: {"sha256": key_digest(key(f"{tenant}-{role}")), "roles": roles}
                for role, roles in tenant_roles.items()
            },
            "limits": limits,
        }
        for tenant, tenant_roles in ROLES.items()
        if tenant != without
    }
    path = folder / "access.yaml"
    path.write_text(json.dumps({"tenants": tenants}))  # JSON is YAML, and faster to write
    return path


class Checked(CheckedAccess):
    """Notices changes of its file at once; the shipped access checks once a second."""

    def __init__(self, folder: Path, **limits: int) -> None:
        self.folder, self.passed = folder, 0.0
        file = ReloadedAccess(access_file(folder, **limits), lambda: self.passed)
        super().__init__(file, TOKENS)

    def write(self, without: str = "", **limits: int) -> None:
        access_file(self.folder, without, **limits)
        self.passed += 2
