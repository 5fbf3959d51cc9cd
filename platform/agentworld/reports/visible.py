"""Words of agents, worlds and people on a page: seen as they are, and able to do nothing.

A template escapes what HTML means something by. What is no printable character (a control, a turn
of the direction, a lone surrogate) is shown as Python writes it.
"""

import re
from functools import lru_cache
from itertools import groupby

from markupsafe import Markup, escape

PREVIEW_LENGTH = 8_000
_UNUSUAL = re.compile(r"[^ -~\n\t]+")
"""Most texts have little else than ASCII, which nobody has to look at character by character."""


def visible(text: str) -> str:
    """In one line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def visible_lines(text: str) -> str:
    """Where lines and tabs stay."""
    return _UNUSUAL.sub(lambda match: visible(match[0]), text)


def to_printable(value: object) -> object:
    """What a template prints of a value."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def preview(text: str, length: int = PREVIEW_LENGTH) -> Markup:
    """The beginning of a text of many lines; what stands for characters that cannot be seen is
    marked so.
    """
    # Escaped first: HTML means nothing by what is unusual.
    return Markup(_UNUSUAL.sub(_mark, str(escape(text[:length]))))


def num_omitted(text: str, length: int = PREVIEW_LENGTH) -> int:
    """Characters that `preview` leaves out of a long text."""
    return max(0, len(text) - length)


def _mark(match: re.Match[str]) -> str:
    """Each run of what cannot be seen is one element."""
    runs = groupby(match[0], str.isprintable)
    return "".join(
        "".join(run) if printable else f'<span class="unseen">{visible("".join(run))}</span>'
        for printable, run in runs
    )


@lru_cache(4_096)
def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
