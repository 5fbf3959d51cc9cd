"""The pages about pipelines show what their commands print."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from fakes import kfp_server
from make import guide, pages

pytestmark = pytest.mark.compute

GUIDES = pages.ROOT / "docs/guides"
PORT = "8888"
"""The server's port on the page."""


def placement(page: Path, first_line: str) -> str:
    """The YAML block of a page that begins with this line."""
    (text,) = [
        block for block in guide.blocks(page.read_text(), "yaml") if block.startswith(first_line)
    ]
    return text


def test_runs_and_schedules_are_printed_as_the_guide_shows(tmp_path):
    page_text = (GUIDES / "schedules.md").read_text()
    text = placement(GUIDES / "pipelines.md", "image: ")
    (tmp_path / "cluster.yaml").write_text(text)
    with kfp_server.running() as server:
        server.course = ["PENDING", "RUNNING", "SUCCEEDED"]
        ports = {PORT: urlsplit(server.url).port or 0}
        with pages.terminal(tmp_path, ports) as terminal:
            output = terminal.play(page_text, "cluster.yaml")
    assert pages.forms(output) == pages.forms(page_text)


def test_the_pipelines_of_the_guide_are_compiled(tmp_path):
    page = GUIDES / "pipelines.md"
    (tmp_path / "cluster.yaml").write_text(placement(page, "image: "))
    with pages.terminal(tmp_path) as terminal:
        output = terminal.play(page.read_text(), "compile")
    assert output == page.read_text()


@pytest.mark.parametrize("name", ["airgap", "spot"])
def test_a_placement_that_a_page_shows_is_compiled(tmp_path, name):
    page = GUIDES / f"{name}.md"
    (tmp_path / "placement.yaml").write_text(placement(page, "# placement.yaml"))
    with pages.terminal(tmp_path) as terminal:
        output = terminal.play(page.read_text(), "compile")
    assert output == page.read_text()
