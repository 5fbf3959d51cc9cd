"""An explorer for any server: it makes calls with arguments that the tools' schemas allow.

Most texts in the arguments come from the server's results or from earlier calls, so that calls
refer to existing things. Some texts are new, and a few calls lack an argument or name no tool.
"""

import random
import re
from collections.abc import Sequence

from pydantic import JsonValue

from agentworld.domains.base import Call
from agentworld.domains.calls import render_calls
from agentworld.domains.live import Observation
from agentworld.domains.tool_schema import Schema
from agentworld.records.tool import Tool, Tools

_WORD = re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"'<>]{1,200}|[^\s\"'{}\[\](),:]{2,60}")
"""An address, or what stands between marks."""
_MOST_TEXTS = 200
_MISTAKES = 0.08
_OPTIONAL = 0.4
_NEW = 0.3
_MOST_DEPTH = 4


class SchemaExplorer:
    """See the module."""

    def __init__(
        self, rng: random.Random, tools: Tools, words: Sequence[str], num_turns: int
    ) -> None:
        """`words` are the words of new texts."""
        self._rng = rng
        self._tools = tools
        self._words = words
        self._num_turns = num_turns
        self._texts: list[str] = []

    def act(self, observation: Observation | None) -> str | None:
        """The next call; null after the last turn, or if there is no tool."""
        if observation:
            self.see(observation.text)
        if self._num_turns <= 0 or not self._tools:
            return None
        self._num_turns -= 1
        tool = self._rng.choice(self._tools)
        arguments = self.arguments(tool)
        name = tool.name
        if self._rng.random() < _MISTAKES:
            if arguments:
                del arguments[self._rng.choice(list(arguments))]
            else:
                name = self._rng.choice(self._words)
        return render_calls([Call(name, arguments)])

    def see(self, observation: str) -> None:
        """Remembers words of an observation for later arguments."""
        self._texts += _WORD.findall(observation)[: _MOST_TEXTS // 4]
        self._texts = self._texts[-_MOST_TEXTS:]

    def arguments(self, tool: Tool) -> dict[str, JsonValue]:
        """Arguments that the schema of a tool allows."""
        return self._object(tool.input_schema, tool.input_schema, 0)

    def _value(self, schema: Schema, root: Schema, depth: int) -> JsonValue:
        schema = self._choose(_resolve(schema, root), root)
        choices = schema.get("enum")
        if isinstance(choices, list) and choices:
            return self._rng.choice(choices)
        if "const" in schema:
            return schema["const"]
        kind = schema.get("type", "string")
        if isinstance(kind, list):
            kind = self._rng.choice(kind)
        match kind:
            case "object":
                return self._object(schema, root, depth + 1)
            case "array":
                return self._array(schema, root, depth + 1)
            case "integer" | "number":
                return self._number(schema)
            case "boolean":
                return self._rng.random() < 0.5
        if kind == "null":
            return None
        addresses = [text for text in self._texts if "://" in text]
        is_address = schema.get("format") == "uri" and addresses
        return self._rng.choice(addresses) if is_address else self._text()

    def _choose(self, schema: Schema, root: Schema) -> Schema:
        """One of a schema's alternatives, or the schema itself if it has none."""
        for key in ("anyOf", "oneOf"):
            parts = schema.get(key)
            if isinstance(parts, list) and parts:
                part = self._rng.choice(parts)
                return _resolve(part, root) if isinstance(part, dict) else {}
        return schema

    def _object(self, schema: Schema, root: Schema, depth: int) -> dict[str, JsonValue]:
        properties, required = schema.get("properties"), schema.get("required")
        if not isinstance(properties, dict) or depth > _MOST_DEPTH:
            return {}
        needed = required if isinstance(required, list) else []
        return {
            name: self._value(part if isinstance(part, dict) else {}, root, depth)
            for name, part in properties.items()
            if name in needed or self._rng.random() < _OPTIONAL
        }

    def _array(self, schema: Schema, root: Schema, depth: int) -> list[JsonValue]:
        items = schema.get("items")
        if depth > _MOST_DEPTH:
            return []
        part = items if isinstance(items, dict) else {}
        return [self._value(part, root, depth) for _ in range(self._rng.randint(1, 2))]

    def _number(self, schema: Schema) -> JsonValue:
        low, high = schema.get("minimum", 0), schema.get("maximum", 9)
        low = int(low) if isinstance(low, int | float) else 0
        high = int(high) if isinstance(high, int | float) else low + 9
        return self._rng.randint(low, max(low, min(high, low + 99)))

    def _text(self) -> str:
        if self._texts and self._rng.random() >= _NEW:
            return self._rng.choice(self._texts)
        text = " ".join(self._rng.sample(list(self._words), self._rng.choice((1, 1, 2))))
        self._texts.append(text)
        return text


def _resolve(schema: Schema, root: Schema) -> Schema:
    """The target of a schema's reference into `root`; an empty schema if there is none."""
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    part: JsonValue = dict(root)
    for key in reference.removeprefix("#/").split("/"):
        part = part.get(key) if isinstance(part, dict) else None
    return part if isinstance(part, dict) else {}
