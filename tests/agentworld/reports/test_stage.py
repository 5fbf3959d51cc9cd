import re
import shutil
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from agentworld.reports.stage import render_stage, write_stage_page
from agentworld.runner.folders import STAGE_PAGE
from agentworld.storage.step_figures import StepFigures

DOMAINS = ("mcp", "search", "terminal", "swe", "android", "web", "os", "<b>text")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a stage with figures of many domains."""
    folder = tmp_path / "sft" / "0123abc"
    folder.mkdir(parents=True)
    figures = StepFigures(folder)
    for step in (0, 20, 40):
        domain_losses = {f"validation_loss/{name}": 3.0 + step / 10 for name in DOMAINS}
        figures.add(step, {"loss": 3.0 - step / 20, "gradient_norm": 1.25, **domain_losses})
    figures.add(60, {"loss": 0.8, "learning_rate": 1.33e-6, "tokens_per_second": 123_456.0})
    return folder


@pytest.mark.waits
def test_a_stage_page_shows_its_state_and_labeled_plots_of_its_figures(folder: Path) -> None:
    page = render_stage(folder, "Running: 60 % done.", is_running=True)
    assert "Running: 60 % done." in page
    assert "Figures up to step 60." in page
    assert "Load the page again" in page
    labels = re.findall(r'<svg role="img"[^>]*aria-label="([^"]+)"', page)
    assert labels[0] == "Loss: loss 3 at step 0, 0.8 at step 60"
    assert len(labels) == 5
    assert re.findall(r"https?://|<link|<script|<img|@import|url\(", page) == []
    assert "&lt;b&gt;text" in page
    assert "<b>text" not in page
    assert "Load the page again" not in render_stage(folder, "Finished.", is_running=False)


@pytest.mark.waits
def test_a_stage_page_reports_missing_and_non_finite_figures(tmp_path: Path) -> None:
    page = render_stage(tmp_path, "Running.", is_running=True)
    assert "There are no figures yet." in page
    assert "is no number" not in page
    StepFigures(tmp_path).add(20, {"loss": float("nan")})
    assert "loss is nan at step 20" in render_stage(tmp_path, "Running.", is_running=True)


@pytest.mark.waits
def test_a_stage_page_fits_narrow_and_wide_screens_and_is_accessible(folder: Path) -> None:
    write_stage_page(folder, "Finished.", is_running=False)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for scheme, width in (("light", 1280), ("dark", 390)):
            context = chromium.new_context(
                color_scheme=scheme, viewport={"width": width, "height": 800}
            )
            page = context.new_page()
            page.goto((folder / STAGE_PAGE).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") == width
            assert Axe().run(page).response["violations"] == []
            styles = page.evaluate(
                "[...document.querySelectorAll('.plots figure:nth-child(2) .legend polyline')]"
                ".map(e => getComputedStyle(e)).map(s => s.stroke + s.strokeDasharray)"
            )
            assert len(set(styles)) == len(DOMAINS)
        chromium.close()
