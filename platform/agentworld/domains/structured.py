"""Converts between the structured content of a tool's result and the text of its observation.

Recorded logs contain only the text of a result, in which most servers repeat the content. So the
content is read from the text: as JSON, or as the value of the schema's only field, because servers
wrap a value that is not an object in a field. Content that the text does not repeat is added to the
observation as a last line.
"""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from agentworld.domains.json_text import encode_json
from agentworld.domains.tool_schema import Schema, compare
from agentworld.errors import InputError


class _NoContent(Exception):
    """An observation contains no structured content that its tool's schema allows."""


def structured_content(observation: str, schema: Schema) -> JsonValue:
    """The structured content in an observation; raises InputError if none fits the schema."""
    try:
        return _first_fit(observation, schema)
    except _NoContent as error:
        raise InputError(
            f"the observation {observation!r:.80} holds no structured content of its tool's schema"
        ) from error


def with_structured_content(text: str, content: JsonValue, schema: Schema) -> str:
    """The observation of a result: its text, and its content if the text does not contain it."""
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
