"""The attributes of a span that have a tool's call, one entry for each naming convention.

A span may follow several conventions. The first one with a value counts.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from agentworld.data.importers.tool_values import decode_json, plain_arguments, result_text

Attributes = Mapping[str, JsonValue]


class Convention(NamedTuple):
    """The attribute names of one family of tracers."""

    kind: str
    """The attribute with the kind of the span."""
    tool: str
    """Its value for the call of a tool, in lower case."""
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    names: tuple[str, ...] = ()
    """The attributes with the tool's name; without a value, the span's name is the tool's name."""
    is_json: bool = False
    """Results are always JSON, so a text has quotation marks."""


_CONVENTIONS = (
    Convention(  # OpenTelemetry's, with the names of any-agent, of Sentry and of Google's ADK
        kind="gen_ai.operation.name",
        tool="execute_tool",
        arguments=(
            "gen_ai.tool.args",
            "gen_ai.tool.call.arguments",
            "gen_ai.tool.input",
            "gcp.vertex.agent.tool_call_args",
        ),
        results=(
            "gen_ai.tool.call.result",
            "gen_ai.tool.output",
            "gen_ai.output",
            "gcp.vertex.agent.tool_response",
        ),
        names=("gen_ai.tool.name",),
    ),
    Convention(  # OpenInference, which Phoenix reads
        kind="openinference.span.kind",
        tool="tool",
        arguments=("input.value",),
        results=("output.value",),
        names=("tool.name",),
    ),
    Convention(  # Traceloop's OpenLLMetry
        kind="traceloop.span.kind",
        tool="tool",
        arguments=("traceloop.entity.input",),
        results=("traceloop.entity.output",),
        names=("traceloop.entity.name",),
        is_json=True,
    ),
    Convention(
        kind="langfuse.observation.type",
        tool="tool",
        arguments=("langfuse.observation.input",),
        results=("langfuse.observation.output",),
    ),
    Convention(  # Laminar
        kind="lmnr.span.type",
        tool="tool",
        arguments=("lmnr.span.input",),
        results=("lmnr.span.output",),
        is_json=True,
    ),
    Convention(  # Vercel's AI SDK
        kind="ai.operationId",
        tool="ai.toolcall",
        arguments=("ai.toolCall.args",),
        results=("ai.toolCall.result",),
        names=("ai.toolCall.name",),
        is_json=True,
    ),
    Convention(  # last, for MLflow copies the values of the others into its own
        kind="mlflow.spanType",
        tool="tool",
        arguments=("mlflow.spanInputs",),
        results=("mlflow.spanOutputs",),
    ),
)
_DEFINITIONS = ("gen_ai.tool.definitions", "mlflow.chat.tools")
_DEFINITION = "llm.tools."
"""OpenInference has one attribute for each tool, `llm.tools.0.tool.json_schema`."""
_DESCRIPTIONS = ("gen_ai.tool.description", "tool.description")
MODELS = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "mlflow.llm.model")
SESSIONS = ("gen_ai.conversation.id", "session.id", "mlflow.trace.session")


class ToolCall(NamedTuple):
    """The call of a tool in a span."""

    name: str
    arguments: JsonValue
    """An object or a text; null if the span has none."""
    result: str | None
    description: str


def tool_call_of(name: str, attributes: Attributes) -> ToolCall | None:
    """The tool call of a span with this name; null for a span that is not a tool call."""
    conventions = [
        convention
        for convention in _CONVENTIONS
        if _kind(convention, attributes).lower() == convention.tool
    ]
    if not conventions:
        return None
    names = [key for convention in conventions for key in convention.names]
    arguments = first_value(
        attributes, (key for convention in conventions for key in convention.arguments)
    )
    results = (
        result_text(value, is_json=convention.is_json)
        for convention in conventions
        if (value := first_value(attributes, convention.results)) is not None
    )
    return ToolCall(
        name=first_word(attributes, names) or name,
        description=first_word(attributes, _DESCRIPTIONS),
        arguments=plain_arguments(arguments),
        result=next(results, None),
    )


def kind_of(attributes: Attributes) -> str:
    """The kind that a span states, such as `chat`."""
    return next(
        (kind for convention in _CONVENTIONS if (kind := _kind(convention, attributes))), "other"
    )


def tool_definitions(attributes: Attributes) -> Iterator[JsonValue]:
    """The tools that a span lists as available to the agent."""
    for key in _DEFINITIONS:
        tools = decode_json(attributes.get(key))
        yield from map(decode_json, tools if isinstance(tools, list) else ())
    for key, value in attributes.items():
        if key.startswith(_DEFINITION) and key.endswith(".json_schema"):
            yield decode_json(value)


def first_value(attributes: Attributes, keys: Iterable[str]) -> JsonValue:
    """The value of the first of these attributes that a span has; null if it has none."""
    return next((value for key in keys if (value := attributes.get(key)) is not None), None)


def first_word(attributes: Attributes, keys: Iterable[str]) -> str:
    """The first of these attributes that is a text; empty if none is."""
    values = (attributes.get(key) for key in keys)
    return next((value for value in values if isinstance(value, str) and value), "")


def _kind(convention: Convention, attributes: Attributes) -> str:
    kind = attributes.get(convention.kind)
    return kind if isinstance(kind, str) else ""
