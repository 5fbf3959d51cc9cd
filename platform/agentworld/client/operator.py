"""Requests of an operator to the service's HTTP API, in addition to those of agents."""

from urllib.parse import quote, urlencode

from pydantic import TypeAdapter

from agentworld.client.simulator import SimulatorClient
from agentworld.records.episode import new_name
from agentworld.records.statements.alias import AgentMove, AliasChange

_CHANGE = TypeAdapter[AliasChange | None](AliasChange | None).validate_json


class OperatorClient(SimulatorClient):
    """Needs the credential of an operator; a refused request raises SimulatorError."""

    async def move_alias(self, alias: str, move: AgentMove) -> AliasChange | None:
        """Points the alias at this version.

        Returns the change; null if the credential is not an auditor's, as in each method.
        """
        return await self._ask_alias("PUT", alias, move=move)

    async def end_alias(self, alias: str, by: str, reason: str | None = None) -> AliasChange | None:
        """Ends the alias, which then resolves to nothing."""
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
