import re
from collections.abc import Mapping
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

import make.job
from agentworld.reports.page import write_page
from agentworld.reports.summary import summarise
from agentworld.steps.table import AFTER_GATE


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


def written(place: Path, folders: Mapping[str, Path]) -> str:
    summary = summarise("demo", folders, 2.5)
    return write_page(place / "report.html", folders, summary, AFTER_GATE).read_text()


@pytest.fixture
def page(tmp_path) -> str:
    folders = make.job.finished_job(tmp_path)
    return written(tmp_path, folders)


def test_the_page_needs_nothing_but_itself(page):
    assert re.findall(r"https?://|<link|<script|<img|@import|url\(", page) == []


def test_the_page_follows_the_light_of_the_screen(page):
    assert "prefers-color-scheme: dark" in page


def test_headings_go_down_by_one_level_at_a_time(page):
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    levels = [int(heading[1]) for heading in outline.headings]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_plot_says_its_numbers_in_words(page):
    labels = re.findall(r'<svg role="img"[^>]*aria-label="([^"]+)"', page)
    assert len(labels) == page.count('role="img"') == 6
    assert all(re.search(r"\d", label) for label in labels)


def test_every_figure_of_the_table_is_on_the_page(page):
    for words in ("0.820", "shell-agent@1", "agentworld-shell@1", "1728 episodes", "212 s"):
        assert words in page


def test_every_difference_on_the_page_has_its_interval_or_says_that_none_is_seen(page):
    for row in ("base", "imitated", "trained", "live gain of RL"):
        told = re.findall(rf'<th scope="row">{row}</th>(.*)', page)[-1]
        assert re.search(r"[+-]\d\.\d{3} <span[^>]*>[+-]\d\.\d\d to [+-]\d\.\d\d", told), told
    (gain,) = re.findall(r'<th scope="row">gain of RL over SFT</th>(.*?)</tr>', page, re.S)
    assert "+0.020 -0.010 to +0.050" in gain
    assert "no difference seen" in gain


def test_text_that_a_model_made_stays_text(tmp_path):
    chain = make.job.chain(breaks=["<script>alert(1)</script>"])
    folders = make.job.finished_job(tmp_path, agent_chain=chain)
    page = written(tmp_path, folders)
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_the_page_of_a_job_that_its_gate_ended_says_why_and_what_was_skipped(tmp_path):
    page = written(tmp_path, make.job.refused_job(tmp_path))
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert (
        "</span>, rl.rule is 0.3, which is under 0.5; register, simulate, deploy, imitate," in page
    )
    assert re.findall("<h2[^>]*>([^<]+)", page) == ["Figures", "World model", "Time and memory"]
