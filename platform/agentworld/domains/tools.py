"""An episode's tools: which there are, and the action that a call of one is."""

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
    """What may be called in an episode, and how its world reads a call."""

    domain: Domain
    tools: tuple[Tool, ...]

    @classmethod
    def of(cls, domain: Domain, opening: EpisodeOpening) -> "Toolbox":
        """The episode's own tools, else those that its domain has."""
        return cls(domain, opening.tools or domain.tools)

    def output_schema_of(self, name: str) -> JsonObject | None:
        """The schema of a tool's structured content; null where it has none."""
        return next((tool.output_schema for tool in self.tools if tool.name == name), None)

    def action_of(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        """A call as the world reads it.

        Raises ActionError for an unknown tool, and for arguments that are not as its schema says.
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
    """Raises InputError naming the first tool whose calls could not be compared with its schema."""
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
