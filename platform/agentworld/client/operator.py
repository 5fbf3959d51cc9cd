"""What an operator asks a service over HTTP, beside all that an agent may."""

from urllib.parse import quote, urlencode

from agentworld.client.simulator import SimulatorClient
from agentworld.records.statements.agent_use import AgentUse, AgentUseMove


class OperatorClient(SimulatorClient):
    """With the credential of an operator; what the service refuses is a SimulatorError."""

    async def start_agent_use(self, name: str, alias: str, move: AgentUseMove) -> AgentUse:
        """From now on a version is in use as this."""
        return await self._ask(_READ, "PUT", _path(name, alias), move, resend=True, of_one=False)

    async def end_agent_use(
        self, name: str, alias: str, by: str, reason: str | None = None
    ) -> AgentUse:
        """From now on no version of this name is."""
        query = {"by": by} | ({"reason": reason} if reason else {})
        path = f"{_path(name, alias)}?{urlencode(query)}"
        return await self._ask(_READ, "DELETE", path, resend=True, of_one=False)


_READ = AgentUse.model_validate_json


def _path(name: str, alias: str) -> str:
    return f"/agent-uses/{quote(name, safe='')}/{quote(alias, safe='')}"
