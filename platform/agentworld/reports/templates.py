"""The templates of reports, which escape all that models, recipes and recordings wrote."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from agentworld.reports import visible

FOLDER = Path(__file__).parent


def templates(*folders: Path) -> Environment:
    """Those of these folders, which come first, and of reports."""
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
