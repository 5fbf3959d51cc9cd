"""Jinja templates of reports; they escape all text of models, recipes and recordings."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from agentworld.reports import visible

FOLDER = Path(__file__).parent


def templates(*folders: Path) -> Environment:
    """The templates in these folders, then those of reports."""
    environment = Environment(
        loader=FileSystemLoader([*folders, FOLDER]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible.to_printable,
    )
    environment.filters["preview"] = visible.preview
    environment.globals["num_omitted"] = visible.num_omitted
    return environment
