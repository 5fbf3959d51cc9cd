"""The structured content of a tool's result, in and out of the text that is its observation.

Most servers repeat it as text, and what the text says already is not said twice: recorded logs hold
the text alone. So a text is read as JSON, or as the value of the schema's only field, as servers
wrap what is no object. Content that no text holds is added as a last line.
"""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from agentworld.domains.json_text import encode_json
from agentworld.domains.tool_schema import Schema, compare
from agentworld.errors import InputError


class _NoContent(Exception):
    """An observation holds none that its tool's schema allows."""


def structured_content(observation: str, schema: Schema) -> JsonValue:
    """What a client reads beside the text; raises InputError where that does not fit the schema."""
    try:
        return _first_fit(observation, schema)
    except _NoContent as error:
        raise InputError(
            f"the observation {observation!r:.80} holds no structured content of its tool's schema"
        ) from error


def with_structured_content(text: str, content: JsonValue, schema: Schema) -> str:
    """The observation of a result: its text, and the content where the text does not say it."""
    try:
        if encode_json(_first_fit(text, schema)) == encode_json(content):
            return text
    except _NoContent:
        pass
    return f"{text}\n{encode_json(content)}" if text else encode_json(content)


def _first_fit(observation: str, schema: Schema) -> JsonValue:
    for value in _readings(observation, schema):
        try:
            compare(value, schema)
        except InputError:
            continue
        return value
    raise _NoContent


def _readings(observation: str, schema: Schema) -> Iterator[JsonValue]:
    properties = schema.get("properties")
    fields = list(properties) if isinstance(properties, dict) else []
    _, is_several, last = observation.rpartition("\n")
    for text in (last, observation) if is_several else (observation,):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        yield value
        if text is observation and len(fields) == 1:
            yield {fields[0]: value}
    if len(fields) == 1:
        yield {fields[0]: observation}
