"""Makes untrusted text visible and harmless on a page.

A template escapes HTML. Unprintable characters (a control character, a change of direction, a lone
surrogate) are shown as Python escapes.
"""

import re
from functools import lru_cache
from itertools import groupby

from markupsafe import Markup, escape

PREVIEW_LENGTH = 8_000
_UNUSUAL = re.compile(r"[^ -~\n\t]+")
"""Most texts are ASCII, which needs no check of each character."""


def visible(text: str) -> str:
    """The text in one line, with unprintable characters as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def visible_lines(text: str) -> str:
    """The same, with line breaks and tabs unchanged."""
    return _UNUSUAL.sub(lambda match: visible(match[0]), text)


def to_printable(value: object) -> object:
    """What a template prints for a value."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def preview(text: str, length: int = PREVIEW_LENGTH) -> Markup:
    """The start of a long text; escapes of unprintable characters are marked."""
    # Escaped first: escaping leaves unusual characters alone, and would later escape the marks.
    return Markup(_UNUSUAL.sub(_mark, str(escape(text[:length]))))


def num_omitted(text: str, length: int = PREVIEW_LENGTH) -> int:
    """The number of characters that `preview` leaves out."""
    return max(0, len(text) - length)


def _mark(match: re.Match[str]) -> str:
    """Marks each run of escapes with one element."""
    runs = groupby(match[0], str.isprintable)
    return "".join(
        "".join(run) if printable else f'<span class="unseen">{visible("".join(run))}</span>'
        for printable, run in runs
    )


@lru_cache(4_096)
def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
