"""The two kinds of access control: off, or by credentials."""

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
    """Access without credentials, for one machine whose users are all trusted.

    A run token still gives access to its run only; every other credential is ignored.
    """

    def __init__(self, tokens: RunTokens) -> None:
        self._tokens = tokens

    async def caller(self, credential: str | None) -> Caller:
        """The run's caller for a run token, otherwise a caller with all rights."""
        return (self._tokens.caller(credential) if credential else None) or LOCAL

    def limits(self, tenant: str) -> Limits:  # noqa: ARG002  there is one
        """No limits."""
        return NO_LIMITS

    def run_token(self, run: str, tenant: str) -> str:
        """A token that gives access to this run only."""
        return self._tokens.token(run, tenant)


class CheckedAccess:
    """Checks run tokens, API keys and service accounts against the current access file."""

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
            self._accounts()  # fails at start if no cluster is configured

    async def caller(self, credential: str | None) -> Caller:
        """The caller of a credential; raises AccessError if it is unknown or missing."""
        caller = await self._find(credential) if credential else None
        if caller is None or caller.tenant not in self._file.index.directory.tenants:
            raise AccessError(
                "the credential is missing, or unknown here; send an API key, a run's token or a"
                " service account's token as a bearer token or as the password in the address;"
                " `agentworld` and its clients take it from AGENTWORLD_CREDENTIAL"
            )
        return caller

    def limits(self, tenant: str) -> Limits:
        """The limits in the current access file."""
        entry = self._file.index.directory.tenants.get(tenant)
        return entry.limits if entry else NO_LIMITS

    def run_token(self, run: str, tenant: str) -> str:
        """A token that gives access to this run only, as long as the access file has the tenant."""
        return self._tokens.token(run, tenant)

    async def _find(self, credential: str) -> Caller | None:
        if caller := self._tokens.caller(credential):
            return caller
        if credential.startswith(PREFIX):
            return self._file.index.by_key.get(key_digest(credential))
        if claimed_account(credential) in self._file.index.by_account:
            account = await self._accounts().account(credential)
            # The file may have changed while the cluster answered.
            return self._file.index.by_account.get(account) if account else None
        return None
