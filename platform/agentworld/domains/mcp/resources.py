"""The resources of an episode's servers as tools, because an agent acts by calls of tools alone.

Names, arguments and results have the form of Codex, whose logs have such calls: a list of one
server comes by page, a list of all servers as a whole.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from agentworld.domains.base import Call
from agentworld.domains.json_text import encode_json
from agentworld.domains.mcp.connection import RequestRefused, ResourceList, ServerConnection
from agentworld.domains.mcp.observation import INVALID_PARAMETERS, refusal, without_bytes
from agentworld.records.base import JsonObject
from agentworld.records.tool import Tool, Tools

_READ = "read_mcp_resource"
_LISTS: dict[str, ResourceList] = {
    "list_mcp_resources": "resources",
    "list_mcp_resource_templates": "resourceTemplates",
}
_MOST_PAGES = 100


class ResourceTools(NamedTuple):
    """The tools for the resources of these servers; without servers there are none."""

    connections: Mapping[str, ServerConnection]

    @property
    def tools(self) -> Tools:
        """Two that list and one that reads."""
        if not self.connections:
            return ()
        server: JsonObject = {"type": "string", "enum": [*self.connections]}
        page: JsonObject = {
            "type": "object",
            "properties": {"server": server, "cursor": {"type": "string"}},
        }
        read: JsonObject = {
            "type": "object",
            "properties": {"server": server, "uri": {"type": "string", "format": "uri"}},
            "required": ["server", "uri"],
        }
        return (
            _tool("list_mcp_resources", "Lists the resources of a server, or of all.", page),
            _tool(
                "list_mcp_resource_templates", "Lists the templates of a server, or of all.", page
            ),
            _tool(_READ, "Reads a resource of a server.", read),
        )

    async def call(self, call: Call) -> str:
        """The observation of a call; raises EnvironmentBroken if a server fails."""
        arguments = {name: value for name, value in call.arguments.items() if value is not None}
        server, uri, cursor = map(arguments.get, ("server", "uri", "cursor"))
        if not all(isinstance(value, str) for value in arguments.values()):
            return refusal(INVALID_PARAMETERS, "Arguments are not texts")
        if server is not None and server not in self.connections:
            return refusal(INVALID_PARAMETERS, f"Unknown server: {server}")
        try:
            if call.name in _LISTS:
                return await self._list(_LISTS[call.name], server, cursor)
            if server is None or uri is None:
                return refusal(INVALID_PARAMETERS, "A server and a uri are required")
            result = await self.connections[str(server)].read_resource(str(uri))
        except RequestRefused as error:
            return str(error)
        contents = [without_bytes(part) for part in result]
        return encode_json({"server": server, "uri": uri, "contents": contents})

    async def _list(self, kind: ResourceList, server: JsonValue, cursor: JsonValue) -> str:
        if server is not None:
            name = str(server)
            text = None if cursor is None else str(cursor)
            items, following = await self.connections[name].list_resources(kind, text)
            page: JsonObject = {"server": name, kind: _with_server(name, items)}
            return encode_json(page | ({"nextCursor": following} if following else {}))
        if cursor is not None:
            return refusal(INVALID_PARAMETERS, "A cursor needs a server")
        all_items: list[JsonValue] = []
        for name in sorted(self.connections):
            all_items += await self._all_pages(kind, name)
        return encode_json({kind: all_items})

    async def _all_pages(self, kind: ResourceList, name: str) -> list[JsonValue]:
        items: list[JsonValue] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page, cursor = await self.connections[name].list_resources(kind, cursor)
            items += _with_server(name, page)
            if cursor is None:
                break
        return items


def _tool(name: str, description: str, schema: JsonObject) -> Tool:
    return Tool(name=name, description=description, input_schema=schema, effect="read")


def _with_server(name: str, items: Sequence[JsonObject]) -> list[JsonValue]:
    return [{"server": name, **item} for item in items]
