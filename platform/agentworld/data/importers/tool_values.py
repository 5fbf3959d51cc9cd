"""Removes what tracers and LangChain write around the arguments and results of tools."""

import json
from contextlib import suppress

from pydantic import JsonValue


def plain_arguments(value: JsonValue) -> JsonValue:
    """Arguments without what decorators and LangChain's callbacks write around them."""
    match decode_json(value):
        case {"args": [], "kwargs": dict(keywords), **others} if not others:
            return keywords
        case {"input_str": _, "inputs": dict(inputs)}:
            return inputs
        case dict(arguments):
            return arguments
        case str(text) if text != value:
            return plain_arguments(text)
    return value


def result_text(value: JsonValue, *, is_json: bool = False) -> str:
    """The tool's own result, without what LangChain writes around it."""
    whole = decode_json(value)
    if isinstance(whole, str):
        return whole if is_json or not isinstance(value, str) else value
    inner = _without_message(whole)
    if isinstance(inner, str):
        return inner
    if inner is whole and isinstance(value, str):
        return value
    return json.dumps(inner, ensure_ascii=False)


def unquote(value: JsonValue) -> JsonValue:
    """The text of a JSON string; any other value unchanged."""
    whole = decode_json(value)
    return whole if isinstance(whole, str) else value


def decode_json(value: JsonValue) -> JsonValue:
    """The value of a text that is JSON; any other value unchanged."""
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            inner: JsonValue = json.loads(value)
            return inner
    return value


def _without_message(value: JsonValue) -> JsonValue:
    match value:
        case {"output": output, "kwargs": dict(), **others} if not others:
            return _without_message(output)
        case {"type": "tool", "tool_call_id": _, "content": str(content)}:
            return content
        case {"lc": 1, "id": [*_, "ToolMessage"], "kwargs": {"content": str(content)}}:
            return content
    return value
