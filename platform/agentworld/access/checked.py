"""The kinds of access: everybody is known, or nobody comes in."""

from collections.abc import Callable
from functools import cache

from agentworld.access.base import LOCAL, Caller
from agentworld.access.key import PREFIX, key_digest
from agentworld.access.limits import NO_LIMITS, Limits
from agentworld.access.reloaded import ReloadedAccess
from agentworld.access.run_token import RunTokens
from agentworld.access.token_review import (
    Review,
    ServiceAccounts,
    claimed_account,
    cluster_review,
)
from agentworld.errors import AccessError


class LocalAccess:
    """Nobody is asked: for one machine, whose other users are trusted as well.

    A run's token still opens its run alone; every other credential is as good as none.
    """

    def __init__(self, tokens: RunTokens) -> None:
        self._tokens = tokens

    async def caller(self, credential: str | None) -> Caller:
        """Everybody."""
        return (self._tokens.caller(credential) if credential else None) or LOCAL

    def limits(self, tenant: str) -> Limits:  # noqa: ARG002  there is one
        """None."""
        return NO_LIMITS

    def run_token(self, run: str, tenant: str) -> str:
        """What opens this run alone."""
        return self._tokens.token(run, tenant)


class CheckedAccess:
    """Run tokens, API keys and service accounts, by what the access file says now."""

    def __init__(
        self,
        file: ReloadedAccess,
        tokens: RunTokens,
        connect: Callable[[], Review] = cluster_review,
    ) -> None:
        self._file = file
        self._tokens = tokens
        self._accounts = cache(lambda: ServiceAccounts(connect()))
        if file.index.by_account:
            self._accounts()  # a service that can ask no cluster says so when it starts

    async def caller(self, credential: str | None) -> Caller:
        """Raises AccessError for a credential that nobody gave out, and where there is none."""
        caller = await self._find(credential) if credential else None
        if caller is None or caller.tenant not in self._file.index.directory.tenants:
            raise AccessError(
                "the credential is missing, or unknown here; send an API key, a run's token or a"
                " service account's token as a bearer token or as the password in the address;"
                " `agentworld` and its clients take it from AGENTWORLD_CREDENTIAL"
            )
        return caller

    def limits(self, tenant: str) -> Limits:
        """As the file says now."""
        entry = self._file.index.directory.tenants.get(tenant)
        return entry.limits if entry else NO_LIMITS

    def run_token(self, run: str, tenant: str) -> str:
        """What opens this run alone, for as long as the tenant is in the file."""
        return self._tokens.token(run, tenant)

    async def _find(self, credential: str) -> Caller | None:
        if caller := self._tokens.caller(credential):
            return caller
        if credential.startswith(PREFIX):
            return self._file.index.by_key.get(key_digest(credential))
        if claimed_account(credential) in self._file.index.by_account:
            account = await self._accounts().account(credential)
            # As the file is now: the cluster may have taken its time.
            return self._file.index.by_account.get(account) if account else None
        return None
