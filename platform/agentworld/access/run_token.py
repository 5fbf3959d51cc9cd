"""Run tokens: the holder may act in that run only.

A token is derived from the run's id and a secret of the service. So a repeated request gets the
same token, every replica can verify it, and none is stored. Closing the run ends its use.
"""

import hashlib
import hmac
import re

from agentworld.access.base import Caller

_PURPOSE = b"agentworld run token v1"
_TOKEN = re.compile(r"awr_([0-9a-f]{32})_([a-z0-9-]{1,63})_([0-9a-f]{64})")


class RunTokens:
    """Creates and verifies run tokens."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, _PURPOSE, hashlib.sha256)

    def token(self, run: str, tenant: str) -> str:
        """The token; it is safe in a URL."""
        return f"awr_{run}_{tenant}_{self._mark(run, tenant)}"

    def caller(self, credential: str) -> Caller | None:
        """The caller of a token; null if the credential is not a valid run token."""
        match = _TOKEN.fullmatch(credential)
        if match is None:
            return None
        run, tenant, mark = match.groups()
        if not hmac.compare_digest(mark, self._mark(run, tenant)):
            return None
        return Caller(tenant, f"run {run}", frozenset(("agent",)), run)

    def _mark(self, run: str, tenant: str) -> str:
        return hmac.digest(self._key, f"{run}\n{tenant}".encode(), hashlib.sha256).hex()
