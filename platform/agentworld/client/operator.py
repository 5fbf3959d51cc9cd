"""What an operator asks a service over HTTP, beside all that an agent may."""

from urllib.parse import quote, urlencode

from pydantic import TypeAdapter

from agentworld.client.simulator import SimulatorClient
from agentworld.records.episode import new_name
from agentworld.records.statements.alias import AgentMove, AliasChange

_CHANGE = TypeAdapter[AliasChange | None](AliasChange | None).validate_json


class OperatorClient(SimulatorClient):
    """With the credential of an operator; what the service refuses is a SimulatorError."""

    async def move_alias(self, alias: str, move: AgentMove) -> AliasChange | None:
        """From now on the alias means this version.

        Answers the change; null if the credential is no auditor's, as for each call here.
        """
        return await self._ask_alias("PUT", alias, move=move)

    async def end_alias(self, alias: str, by: str, reason: str | None = None) -> AliasChange | None:
        """From now on it means nothing."""
        query = {"by": by} | ({"reason": reason} if reason else {})
        return await self._ask_alias("DELETE", alias, f"?{urlencode(query)}")

    async def _ask_alias(
        self, method: str, alias: str, query: str = "", move: AgentMove | None = None
    ) -> AliasChange | None:
        path, headers = f"/aliases/{quote(alias, safe='')}{query}", {"idempotency-key": new_name()}
        return await self._ask(
            _CHANGE,
            method,
            path,
            move,
            resend=True,
            of_one=False,
            headers=headers,
        )
