"""What the pages of the reference are written with: a title and tables in Markdown."""

import json
from pathlib import Path
from tempfile import gettempdir


def default(value: object) -> str:
    """A default as a person writes it; empty for what is empty."""
    text = json.dumps(value, default=str).strip('"')
    if isinstance(value, Path) and value.is_relative_to(gettempdir()):
        return "`$TMPDIR/agentworld`"
    return f"`{text}`" if text.strip("*") not in ("", "null", "[]", "{}") else ""


def page(title: str, text: str) -> str:
    """The start of a page."""
    return f"# {title}\n\n<!-- written by tools/reference.py: run `make manifests` -->\n\n{text}\n"


def head(*names: str) -> str:
    """The first two lines of a table."""
    return row(*names) + f"|{'---|' * len(names)}\n"


def row(*cells: str) -> str:
    """A line of a table."""
    escaped = [cell.replace("|", r"\|") for cell in cells]
    return f"| {' | '.join(escaped)} |\n"
