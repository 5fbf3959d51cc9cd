"""Observations of MCP: the text of a tool's result, of a tool's error, or of a refusal.

They have the form of recorded logs. Logs contain the texts of a result and no error flag, so an
error is recognised by its first words.
"""

import json
import re
from collections.abc import Iterable

from pydantic import JsonValue

from agentworld.domains.failure import reports_failure
from agentworld.domains.json_text import encode_json
from agentworld.domains.structured import with_structured_content
from agentworld.domains.tool_schema import Schema

PARSE_ERROR, INVALID_PARAMETERS = -32700, -32602

_REFUSED = re.compile(r"MCP error -?\d+: ")


def is_failure(observation: str) -> bool:
    """Whether the protocol refused a call, or a tool answered with an error."""
    return _REFUSED.match(observation) is not None or reports_failure(observation)


def result_text(
    blocks: Iterable[JsonValue],
    *,
    structured: JsonValue = None,
    output_schema: Schema | None = None,
    is_error: bool = False,
) -> str:
    """The observation of a result; `blocks` are its content blocks in MCP's JSON."""
    text = "\n".join(map(_block_text, blocks))
    if is_error:
        return text if is_failure(text) else f"Error: {text}"
    if output_schema is None or structured is None:
        return text
    return with_structured_content(text, structured, output_schema)


def refusal(code: int, message: str) -> str:
    """The observation of a call that the protocol refused, in the words of MCP's clients."""
    return f"MCP error {code}: {message}"


def malformed_refusal(action: str) -> str:
    """The observation of an action that is not a call of a tool: an error of JSON-RPC."""
    try:
        json.loads(action)
    except (ValueError, RecursionError):
        return refusal(PARSE_ERROR, "Parse error")
    return refusal(INVALID_PARAMETERS, "Invalid request parameters")


def _block_text(block: JsonValue) -> str:
    """A text unchanged; any other block as JSON, without its binary data."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource", "resource": dict(resource)}:
            return encode_json({"type": "resource", **without_bytes(resource)})
        case dict(fields):
            return encode_json(without_bytes(fields))
    return encode_json(block)


def without_bytes(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Replaces binary data by its length."""
    return {
        name: len(value) if name in ("blob", "data") and isinstance(value, str) else value
        for name, value in fields.items()
    }
