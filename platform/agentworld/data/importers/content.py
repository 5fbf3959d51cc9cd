"""The text of a message's content, which is a text or a list of parts."""

import json
import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agentworld.data.importers.events import Event
from agentworld.records.trajectory import Span


def text_of(content: JsonValue, place: str) -> tuple[str, Sequence[Event]]:
    """The text, and the parts that are not text, such as images."""
    match content:
        case None:
            return "", []
        case str():
            return content, []
        case list():
            texts = [_text(part) for part in content]
            others = [
                Event(f"{place}.content[{number}]", "left out", reason=f"part: {_kind(part)}")
                for number, (part, text) in enumerate(zip(content, texts, strict=True))
                if text is None
            ]
            return "\n".join(text for text in texts if text is not None), others
    return json.dumps(content, ensure_ascii=False), []


def spans_of(text: str, marks: Mapping[str, re.Pattern[str]]) -> tuple[Span, ...]:
    """The parts of a text that match a mark, in order, each with the name of its mark."""
    spans = [
        Span(start=match.start(), end=match.end(), what=name)
        for name, mark in marks.items()
        for match in mark.finditer(text)
    ]
    return tuple(sorted(spans, key=lambda span: (span.start, span.end)))


def _text(part: JsonValue) -> str | None:
    text = part.get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else None


def _kind(part: JsonValue) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else "unknown"
