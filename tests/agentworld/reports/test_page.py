import re
import shutil
from collections.abc import Mapping
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

import make.job
from agentworld.records.endpoint_usage import EndpointUsage, JudgeUse
from agentworld.records.report import AgentScore
from agentworld.reports.page import write_page
from agentworld.reports.summary import summarise
from agentworld.runner.folders import REPORT, STAGE_PAGE
from agentworld.steps.table import AFTER_GATE
from make import records


class Outline(HTMLParser):
    """Headings in their order, and tags that were never closed."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(tag)
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """Opens nothing."""


def write_report(target: Path, folders: Mapping[str, Path], recipe: str = "demo") -> str:
    summary = summarise(recipe, folders, 2.5)
    return write_page(target / "report.html", folders, summary, AFTER_GATE).read_text()


@pytest.fixture
def page(tmp_path) -> str:
    folders = make.job.finished_job(tmp_path)
    return write_report(tmp_path, folders)


@pytest.mark.waits
def test_the_page_loads_no_external_resource(page):
    assert re.findall(r"https?://|<link|<script|<img|@import|url\(", page) == []


@pytest.mark.waits
def test_the_page_has_a_dark_mode(page):
    assert "prefers-color-scheme: dark" in page


@pytest.mark.waits
def test_tags_are_closed_and_heading_levels_increase_by_at_most_one(page):
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    levels = [int(heading[1]) for heading in outline.headings]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.waits
def test_every_plot_has_a_label_with_its_numbers(page):
    labels = re.findall(r'<svg role="img"[^>]*aria-label="([^"]+)"', page)
    assert len(labels) == page.count('role="img"') == 6
    assert all(re.search(r"\d", label) for label in labels)


@pytest.mark.waits
def test_the_page_shows_the_figures_versions_and_times_of_a_job(page):
    for text in ("0.820", "shell-agent@1", "agentworld-shell@1", "1728 episodes", "212 s"):
        assert text in page


@pytest.mark.waits
def test_every_difference_on_the_page_has_its_interval(page):
    for row in ("base", "imitated", "trained", "live gain of RL"):
        cells = re.findall(rf'<th scope="row">{row}</th>(.*)', page)[-1]
        assert re.search(r"[+-]\d\.\d{3} <span[^>]*>[+-]\d\.\d\d to [+-]\d\.\d\d", cells), cells
    (gain,) = re.findall(r'<th scope="row">gain of RL over SFT</th>(.*?)</tr>', page, re.S)
    assert "+0.020 -0.010 to +0.050" in gain
    assert "no difference seen" in gain


@pytest.mark.waits
def test_the_page_describes_the_sign_of_a_gap(tmp_path):
    folders = make.job.finished_job(tmp_path)
    score = AgentScore(simulated=records.estimate(0.1), live=records.estimate(0.5))
    records.agent_report(trained=score).write(folders["validate"] / REPORT)
    page = write_report(tmp_path, folders)
    rows = re.findall(r'<th scope="row">(base|trained)</th>(.*)', page)
    gaps = {name: cells for name, cells in rows if "to" in cells}
    assert ", no difference seen" in gaps["base"]
    assert ", the simulator is harder" in gaps["trained"]
    assert "is higher than" not in gaps["trained"]


@pytest.mark.waits
def test_baselines_are_explained_beside_their_bars(page):
    assert "baselines, which need no training: copy predicts the last observation again;" in page


@pytest.mark.waits
def test_the_report_links_to_the_curves_of_stages_with_a_page(tmp_path, page):
    assert "Curves" not in page
    folders = make.job.finished_job(tmp_path)
    for stage in ("cpt", "rl"):
        (folders[stage] / STAGE_PAGE).touch()
    links = re.findall('<a href="([^"]+)">([^<]+)</a>', write_report(tmp_path, folders))
    assert [stage for _, stage in links] == ["cpt", "rl"]
    assert [tmp_path / address for address, _ in links] == [
        *(folders[stage] / STAGE_PAGE for stage in ("cpt", "rl"))
    ]


@pytest.mark.waits
def test_model_generated_text_is_escaped(tmp_path):
    chain = make.job.chain(problems=["<script>alert(1)</script>"])
    folders = make.job.finished_job(tmp_path, agent_chain=chain)
    page = write_report(tmp_path, folders)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.waits
def test_the_page_of_a_refused_job_shows_the_reason_and_the_skipped_steps(tmp_path):
    page = write_report(tmp_path, make.job.refused_job(tmp_path))
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert (
        "</span>, rl.rule is 0.3, which is under 0.5; register, simulate, deploy, imitate," in page
    )
    assert re.findall("<h2[^>]*>([^<]+)", page) == ["Figures", "World model", "Time and memory"]


@pytest.fixture
def grouped(tmp_path) -> str:
    folders = make.job.finished_job(tmp_path)
    (folders["sft"] / STAGE_PAGE).touch()
    records.grouped_report().write(folders["evaluate"] / REPORT)
    return write_report(tmp_path, folders)


def row_of(page: str, name: str) -> str:
    (row,) = re.findall(rf'<tr><th scope="row">{name}</th>(.*?)</tr>', page, re.DOTALL)
    return row


@pytest.mark.waits
def test_a_metric_is_shown_with_its_lead_and_a_missing_figure_with_its_reason(grouped):
    assert "0.900" in row_of(grouped, "token_f1")
    assert row_of(grouped, "token_f1").endswith("over copy</td>")
    assert "No figure of <code>embedding</code>: no model." in grouped
    assert "without a verdict" not in grouped


@pytest.mark.waits
@pytest.mark.parametrize(
    ("dollars", "price"), [(None, "of unknown price"), ("1.5", "1.50 dollars")]
)
def test_the_page_shows_the_judges_score_missing_verdicts_and_price(tmp_path, dollars, price):
    folders = make.job.finished_job(tmp_path)
    report = records.grouped_report()
    rl_score = report.stages["rl"]
    metrics = {**rl_score.metrics, "judge": records.estimate(0.75)}
    usage = EndpointUsage(num_answers=104, dollars=dollars)
    judge = JudgeUse(models=("a-judge-2026",), num=100, holes=2, usage=usage)
    stages = {**report.stages, "rl": rl_score.model_copy(update={"metrics": metrics})}
    report = report.model_copy(update={"stages": stages, "judge": judge})
    report.write(folders["evaluate"] / REPORT)
    page = write_report(tmp_path, folders)
    assert "0.750" in row_of(page, "judge")
    sentence = "a-judge-2026</code>: 100 predictions, 2 without a verdict, which count in no figure"
    assert f"{sentence}; 104 answers, {price}." in page


@pytest.mark.waits
def test_kinds_of_turns_show_their_counts_and_small_groups_are_marked(grouped):
    assert "<td>60</td>" in row_of(grouped, "read")
    assert '<td>25 <span class="soft">few</span></td>' in row_of(grouped, "write")
    assert "+0.300" in row_of(grouped, "read")


@pytest.mark.waits
def test_tags_are_in_a_collapsed_section(grouped):
    (details,) = re.findall("<details>(.*?)</details>", grouped, re.DOTALL)
    assert [name for name in ("cat", "ls") if row_of(details, name)] == ["cat", "ls"]


@pytest.mark.waits
def test_a_report_without_kinds_and_leads_shows_neither(page):
    assert "Kinds of turns" not in page
    assert row_of(page, "exact_match").endswith("<td></td>")


@pytest.mark.waits
def test_a_recipe_too_small_for_the_targets_shows_that_no_target_applies(tmp_path):
    folders = make.job.finished_job(tmp_path)
    page = write_report(tmp_path, folders, "smoke")
    assert "no target applies" in page
    assert "at least" not in page
    assert "at most 0" in row_of(page, "live steps in training")
    assert "no target applies" not in write_report(tmp_path, folders)


@pytest.mark.waits
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.usefixtures("grouped")
def test_on_a_narrow_screen_no_word_breaks_and_the_page_is_accessible(tmp_path, scheme):
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        context = chromium.new_context(color_scheme=scheme, viewport={"width": 390, "height": 800})
        page = context.new_page()
        page.goto((tmp_path / "report.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        names = page.locator(".rows th[scope=row]")
        heights = {names.nth(index).bounding_box()["height"] for index in range(names.count())}
        assert max(heights) < 40  # one line each
        assert Axe().run(page).response["violations"] == []
        chromium.close()
