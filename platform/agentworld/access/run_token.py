"""A run's token: who has it may act in that run, and nowhere else.

It is made from the run's name and a secret of the service, so that a request that is sent again
gets the same one, every replica knows it, and nothing is stored. Closing the run ends its use.
"""

import hashlib
import hmac
import re

from agentworld.access.base import Caller

_PURPOSE = b"agentworld run token v1"
_TOKEN = re.compile(r"awr_([0-9a-f]{32})_([a-z0-9-]{1,63})_([0-9a-f]{64})")


class RunTokens:
    """Makes tokens and knows its own."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, _PURPOSE, hashlib.sha256)

    def token(self, run: str, tenant: str) -> str:
        """Letters, digits, dashes and underscores: it may stand in an address."""
        return f"awr_{run}_{tenant}_{self._mark(run, tenant)}"

    def caller(self, credential: str) -> Caller | None:
        """Who comes with it; null for what is no token of ours."""
        match = _TOKEN.fullmatch(credential)
        if match is None:
            return None
        run, tenant, mark = match.groups()
        if not hmac.compare_digest(mark, self._mark(run, tenant)):
            return None
        return Caller(tenant, f"run {run}", frozenset(("agent",)), run)

    def _mark(self, run: str, tenant: str) -> str:
        return hmac.digest(self._key, f"{run}\n{tenant}".encode(), hashlib.sha256).hex()
