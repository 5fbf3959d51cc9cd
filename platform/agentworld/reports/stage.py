"""The page of a training stage with its curves, also while it runs.

One HTML file, for light and dark screens, that loads nothing.
"""

from datetime import UTC, datetime
from pathlib import Path

from agentworld.records.file import write_whole
from agentworld.reports.curves import HEIGHT, NUM_KINDS, WIDTH, not_finite, plots_of
from agentworld.reports.templates import templates
from agentworld.runner.folders import STAGE_PAGE
from agentworld.storage.step_figures import read_figures


def write_stage_page(folder: Path, state: str, *, is_running: bool) -> None:
    """Writes the page of a stage's folder from its figures, atomically."""
    page = render_stage(folder, state, is_running=is_running)
    write_whole(folder / STAGE_PAGE, page.encode())


def render_stage(folder: Path, state: str, *, is_running: bool) -> str:
    """The page as text."""
    figures = read_figures(folder)
    return (
        templates()
        .get_template("stage.html")
        .render(
            stage=folder.parent.name,
            training=f"{folder.parent.name}/{folder.name}",
            state=state,
            is_running=is_running,
            written=f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
            last_step=max(figures, default=None),
            problem=not_finite(figures),
            plots=plots_of(figures),
            width=WIDTH,
            height=HEIGHT,
            num_kinds=NUM_KINDS,
        )
    )
