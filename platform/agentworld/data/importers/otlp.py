"""OTLP's JSON: attributes as a list of keys with typed values, and spans below their resources."""

from collections.abc import Iterator

from pydantic import AliasChoices, BaseModel, Field, JsonValue


class _Scope(BaseModel):
    spans: list[JsonValue] = []


class _Resource(BaseModel):
    scopes: list[_Scope] = Field(
        [],
        validation_alias=AliasChoices("scopeSpans", "scope_spans", "instrumentationLibrarySpans"),
    )


class Export(BaseModel):
    """One message of an exporter, with spans of any traces."""

    resources: list[_Resource] = Field(
        validation_alias=AliasChoices("resourceSpans", "resource_spans")
    )

    def spans(self) -> Iterator[tuple[str, JsonValue]]:
        """Each span unchanged, with its place."""
        for number, resource in enumerate(self.resources):
            for inner, scope in enumerate(resource.scopes):
                location = f"resourceSpans[{number}].scopeSpans[{inner}]"
                for innermost, span in enumerate(scope.spans):
                    yield f"{location}.spans[{innermost}]", span


def attributes_of(value: object) -> object:
    """Attributes by key, from OTLP's list or from an object; pydantic validates them."""
    return dict(map(_pair, value)) if isinstance(value, list) else value or {}


def _pair(value: object) -> tuple[str, object]:
    match value:
        case {"key": str(key), **others}:
            return key, _plain(others.get("value"))
    raise ValueError("an attribute has no key")


def _plain(value: object) -> object:
    """The value of an `AnyValue`, which has one field that is named after its type."""
    match value:
        case {"arrayValue": {"values": list(values)}}:
            return [_plain(item) for item in values]
        case {"kvlistValue": {"values": list(values)}}:
            return attributes_of(values)
        case {"intValue": str(digits)} if digits.removeprefix("-").isdecimal():
            return int(digits)
        case dict() if len(value) == 1:
            return next(iter(value.values()))
    return None
