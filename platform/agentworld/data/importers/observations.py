"""Undoes what a harness did to an observation: a repr around it, a truncation, lines at its end.

Several forms have such observations and share these options.
"""

import ast
import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from agentworld.data.importers.base import ImportOptions
from agentworld.records.trajectory import Span

_HARNESS = "line of the harness"

_ESCAPE = r"\\(?:[\\'\"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"
_LITERAL = rf"'(?:[^'\\\n]++|{_ESCAPE})*+'|\"(?:[^\"\\\n]++|{_ESCAPE})*+\""
_START, _END = r"TextContent\(type='text', text=", r"(?:, (?:annotations|meta)=None)*\)"
_ITEM = rf"{_START}(?:{_LITERAL}){_END}"
_WHOLE = re.compile(
    rf"(?:meta=None content=)?\[(?:{_ITEM}(?:, {_ITEM})*)?\]"
    r"(?: structuredContent=None)?(?: isError=(?:True|False))?"
)
_LITERALS = re.compile(rf"{_START}({_LITERAL}){_END}")


def _is_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"it is not a regular expression ({error}); correct it") from error
    return text


class ObservationOptions(ImportOptions):
    """The changes that a harness made to observations."""

    unwrap: Literal["", "textcontent"] = ""
    """`textcontent` unwraps the repr of a Python list of MCP's `TextContent` objects, or of a
    result with such a list: the observation becomes their texts, joined by line feeds. Any other
    observation, for example a truncated one, stays unchanged. Empty turns this off.
    """
    cut_at: int = Field(default=0, ge=0)
    """Observations of exactly this many characters count as truncated. 0 turns this off."""
    harness_lines: tuple[Annotated[str, AfterValidator(_is_pattern)], ...] = ()
    """Regular expressions of whole lines that the harness adds at the end of an observation, such
    as `You have .* steps left`. The import keeps these lines and marks them as the harness's.
    """


def observation_of(text: str, options: ObservationOptions) -> tuple[str, tuple[Span, ...], bool]:
    """The text of the observation, the spans of the harness in it, and whether it is truncated."""
    is_cut = bool(options.cut_at) and len(text) == options.cut_at
    whole = _unwrap(text) if options.unwrap else text
    return whole, _spans(whole, options.harness_lines), is_cut


def _unwrap(text: str) -> str:
    if not _WHOLE.fullmatch(text):
        return text
    try:
        return "\n".join(ast.literal_eval(literal) for literal in _LITERALS.findall(text))
    except (SyntaxError, ValueError):  # an escape of no character, or what no source may hold
        return text


def _spans(text: str, patterns: Sequence[str]) -> tuple[Span, ...]:
    """The spans of matching lines at the end, with the white space between and after them."""
    if not patterns:
        return ()
    position, start = len(text), len(text)
    for line in reversed(text.split("\n")):
        is_match = any(re.fullmatch(pattern, line.rstrip("\r")) for pattern in patterns)
        if line.strip() and not is_match:
            break
        start = position - len(line) if is_match else start
        position -= len(line) + 1
    return (Span(start=start, end=len(text), what=_HARNESS),) if start < len(text) else ()
