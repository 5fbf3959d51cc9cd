"""Words of agents, worlds and people on a page: seen as they are, and able to do nothing.

A template escapes what HTML means something by. What is no printable character (a control, a turn
of the direction, a lone surrogate) is shown as Python writes it.
"""

from urllib.parse import quote

from markupsafe import Markup, escape

_MOST_SHOWN = 20_000
_MOST_LETTERS = 15


def visible(text: str) -> str:
    """In one line."""
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def visible_lines(text: str) -> str:
    """Where lines and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)


def shown(value: object) -> object:
    """What a template prints of a value."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def told(text: str) -> Markup:
    """A text of many lines; what stands for a character that cannot be seen is marked so."""
    parts = (
        escape(c)
        if c.isprintable() or c in "\n\t"
        else Markup('<span class="unseen">{}</span>').format(_escaped(c))
        for c in text[:_MOST_SHOWN]
    )
    return Markup("").join(parts)


def num_untold(text: str) -> int:
    """Characters that `told` leaves out of a long text."""
    return max(0, len(text) - _MOST_SHOWN)


def brief(digest: str | None) -> str:
    """A digest that a person can compare."""
    return digest.removeprefix("sha256:")[:12] if digest else "none"


def shortened(text: str) -> str:
    """Its beginning and its end, where what makes it differ may be."""
    if len(text) <= _MOST_LETTERS:
        return text
    return f"{text[:8]}\N{HORIZONTAL ELLIPSIS}{text[-6:]}"


def at(*parts: str) -> str:
    """The address of a page."""
    return "/" + "/".join(quote(part.encode("utf-8", "surrogatepass"), safe="@:") for part in parts)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
