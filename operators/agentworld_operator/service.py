"""The operator's client of the simulator service, which judges and records moves of aliases."""

from pathlib import Path
from typing import Any

import httpx
from pydantic import TypeAdapter

from agentworld.engine.http_client import trusted_authorities
from agentworld.errors import Conflict, InputError, NotFound, SimulatorError
from agentworld.records.base import Digest
from agentworld.records.statements.alias import AliasChange, AliasMove, SimulatorUse

_SECONDS = 5.0
_HISTORY = TypeAdapter(list[AliasChange])
_REFUSALS = {404: NotFound, 409: Conflict, 422: InputError}


class Service:
    """Each call raises the service's refusal, or SimulatorError if it does not answer."""

    def __init__(self, url: str, token: Path | None) -> None:
        """`token` is the file of a credential, which a cluster rotates."""
        self._url = url.rstrip("/")
        self._token = token

    async def move(
        self, alias: str, move: AliasMove, key: str, *, dry_run: bool = False
    ) -> AliasChange:
        """Points the alias at a target, once for each key."""
        arguments = {"json": move.model_dump(mode="json"), "params": {"dry_run": dry_run}}
        change = await self._ask("PUT", f"/aliases/{alias}", key, **arguments)
        return AliasChange.model_validate(change)

    async def end(
        self, alias: str, by: str, key: str, request: str, *, dry_run: bool = False
    ) -> None:
        """Ends an alias; raises NotFound for an unknown one.

        `request` is the id of the spec whose deletion ends it.
        """
        params = {"by": by, "dry_run": dry_run, "request": request}
        await self._ask("DELETE", f"/aliases/{alias}", key, params=params)

    async def history(self, alias: str) -> list[AliasChange]:
        """The ledger's changes of an alias, the oldest first; none for an unknown one."""
        try:
            return _HISTORY.validate_python(await self._ask("GET", f"/aliases/{alias}"))
        except NotFound:
            return []

    async def last(self, alias: str) -> AliasChange | None:
        """The last change of an alias; null for an unknown one."""
        return next(reversed(await self.history(alias)), None)

    async def histories(self) -> list[AliasChange]:
        """The changes of all aliases, the oldest first."""
        return _HISTORY.validate_python(await self._ask("GET", "/aliases"))

    async def use(self, simulator: Digest) -> SimulatorUse:
        """The open runs and episodes of a simulator."""
        return SimulatorUse.model_validate(await self._ask("GET", f"/simulators/{simulator}/use"))

    async def _ask(self, method: str, path: str, key: str = "", **arguments: Any) -> object:
        try:
            headers = {"Idempotency-Key": key} if key else {}
            async with service_client(self._token) as client:
                answer = await client.request(
                    method, self._url + path, headers=headers, **arguments
                )
            body: object = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise SimulatorError(
                f"the simulator service does not answer ({type(error).__name__}); try again",
                retryable=True,
            ) from error
        if answer.is_success:
            return body
        message = _message(body)
        if refusal := _REFUSALS.get(answer.status_code):
            raise refusal(message)
        raise SimulatorError(
            f"the simulator service does not answer this: {message}", retryable=True
        )


def service_client(token: Path | None) -> httpx.AsyncClient:
    """A client with the credential in a file; with none if the service needs none.

    Raises OSError if the file cannot be read.
    """
    headers = {}
    if token is not None:
        headers["Authorization"] = f"Bearer {token.read_text(encoding='ascii').strip()}"
    return httpx.AsyncClient(verify=trusted_authorities(), timeout=_SECONDS, headers=headers)


def _message(body: object) -> str:
    match body:
        case {"error": {"message": str(message)}}:
            return message
    return "it gives no reason"
