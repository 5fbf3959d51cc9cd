"""Text of agents and worlds for a person's terminal: it is shown, and can do nothing there.

A simulator may say anything: a control sequence that clears the screen, hides a line, or writes
the clipboard. What is no printable character is shown as an escape.
"""


def plain(text: str) -> str:
    """One line of printable characters; the others are written as Python writes them."""
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
