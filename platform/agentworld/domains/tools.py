"""The tools of an episode, and how a call of a tool becomes an action."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from agentworld.domains.base import Action, ActionError, Call, Domain
from agentworld.domains.calls import render_calls
from agentworld.domains.tool_schema import check_schema, compare
from agentworld.errors import InputError
from agentworld.records.base import JsonObject, canonical_json
from agentworld.records.episode import EpisodeOpening
from agentworld.records.tool import Tool

_MOST_BYTES = 2**18


class Toolbox(NamedTuple):
    """The tools that an agent may call in an episode, and the domain that renders the calls."""

    domain: Domain
    tools: tuple[Tool, ...]

    @classmethod
    def of(cls, domain: Domain, opening: EpisodeOpening) -> "Toolbox":
        """The tools of the episode's opening; without any, those of its domain."""
        return cls(domain, opening.tools or domain.tools)

    def output_schema_of(self, name: str) -> JsonObject | None:
        """The schema of a tool's structured content; null if the tool has none."""
        return next((tool.output_schema for tool in self.tools if tool.name == name), None)

    def action_of(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        """The action of a call.

        Raises ActionError for an unknown tool, and for arguments that do not fit its schema.
        """
        by_name = {tool.name: tool for tool in self.tools}
        if name not in by_name:
            names = ", ".join(by_name) or "none"
            raise ActionError(
                f"there is no tool {name[:80]!r} in this episode; there is {names:.200}"
            )
        try:
            compare(dict(arguments), by_name[name].input_schema)
        except InputError as error:
            raise ActionError(
                f"the arguments of {name} do not fit its schema: {error}; call it otherwise"
            ) from error
        call = Call(name, arguments)
        if by_name[name] in self.domain.tools:
            return self.domain.render_action(Action("", (call,)))
        return render_calls([call])


def check_tools(tools: Iterable[Tool]) -> None:
    """Raises InputError naming the first tool with a schema that cannot be checked."""
    num_bytes = 0
    for tool in tools:
        for kind, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
            if schema is None:
                continue
            num_bytes += len(canonical_json(schema))
            if num_bytes > _MOST_BYTES:
                raise InputError(
                    f"the tools' schemas have more than {_MOST_BYTES} bytes; shorten them"
                )
            try:
                check_schema(schema)
            except InputError as error:
                raise InputError(
                    f"the {kind} schema of tool {tool.name} cannot be used: {error}; change it"
                ) from error
