"""The page of a data set: its content, and the absence of active elements."""

import re
from html.parser import HTMLParser

import pytest

import make.datasets
from agentworld.records.dataset import DataSet, Lengths, Parent
from agentworld.records.quarantine import QUARANTINE, QuarantinedRecord
from agentworld.reports.dataset import bucket, render_dataset, view_dataset
from agentworld.storage.datasets import StoredDataSet
from make import records

PASSWORD = f"Tr0ub4dor{'-'}7"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make.datasets.stored(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def view(dataset):
    return view_dataset(dataset)


@pytest.fixture(scope="module")
def page(view):
    return render_dataset(view)


class Elements(HTMLParser):
    """Tags and attributes of a page, and the levels of its headings."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.levels: list[int] = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))


def rows(tables, title):
    (table,) = [table for table in tables if table.title == title]
    return {row.label: row.num for row in table.rows}


def test_the_counts_of_the_data_flow_add_up_from_records_to_pools(view, dataset):
    flow = {row.label: row.num for row in view.flow.rows}
    assert flow["recorded"] == make.datasets.NUM_EPISODES + make.datasets.NUM_BAD
    assert flow["imported"] == make.datasets.NUM_EPISODES
    short = rows(view.losses, "Left out by filters")["short trajectory"]
    assert flow["passed the filters"] == flow["imported"] - short
    pools = [num for label, num in flow.items() if label.startswith("pool ")]
    assert sum(pools) == flow["passed the filters"] == dataset.dataset.num_trajectories


def test_broken_collected_episodes_count_as_recorded_and_as_left_out():
    parent = Parent(collected=records.digest("c"), num_broken=3)
    dataset = records.dataset().model_copy(update={"parents": (parent,), "num_read": 9})
    view = view_dataset(StoredDataSet(dataset, records.digest("nowhere"), records.digest("no")))
    assert view.flow.rows[0].num == 12
    assert rows(view.losses, "Left out of the recordings") == {"episode that broke its sandbox": 3}


def test_the_page_shows_examples_of_every_pool_with_marked_targets(view, page):
    assert {example.pool for example in view.examples} == {"cpt", "sft", "rl", "held_out"}
    for kind in ("target", "masked", "judged"):
        assert f'<span class="mask {kind}">' in page
        assert f'class="{kind}" role="region"' in page


def test_each_turn_of_an_example_is_shown_as_masked_or_as_a_target(view, page):
    (rl, *_) = (example for example in view.examples if example.pool == "rl")
    kinds = ["target" if turn.target else "masked" for turn in rl.sample.turns]
    section = page.split(rl.sample.trajectory)[1].split("</section>")[0]
    assert re.findall(r'class="(target|masked)" role', section) == kinds[:8]


def test_the_quarantine_has_line_field_and_reason(view, page):
    locations = [(row.place, row.field) for row in view.quarantine]
    assert locations == [("line 61", ""), ("line 62", "messages.0"), ("line 63", "")]
    assert all(row.reason for row in view.quarantine)
    assert "line 62" in page


@pytest.mark.compute
def test_the_page_redacts_secrets_in_the_quarantine_of_an_older_import(tmp_path):
    dataset = make.datasets.stored(tmp_path)
    problem = f"x: no list (got 'password={PASSWORD}')"
    record = QuarantinedRecord(file="a", place="line 1", problem=problem)
    (path,) = tmp_path.glob(f"steps/collect/*/{QUARANTINE}")
    path.write_text(record.model_dump_json() + "\n")
    page = render_dataset(view_dataset(dataset))
    assert PASSWORD not in page
    assert "no list (got &#39;password=[REDACTED:password:1]&#39;)" in page


def test_recorded_text_is_escaped_and_creates_no_html_elements(page):
    elements = Elements()
    elements.feed(page)
    assert elements.tags & {"script", "i", "b", "img", "iframe", "link"} == set()
    assert not any(name.startswith("on") for name in elements.attributes)
    assert "{{ 7 * 7 }}" in page
    assert all(c.isprintable() or c in "\n\t" for c in page)


def test_the_page_loads_no_external_resource_and_has_a_dark_mode(page):
    assert re.findall(r"https?://|<link|<script|<img|@import|url\(", page) == []
    assert "prefers-color-scheme: dark" in page


def test_heading_levels_increase_by_at_most_one(page):
    elements = Elements()
    elements.feed(page)
    assert elements.levels[0] == 1
    pairs = zip(elements.levels, elements.levels[1:], strict=False)
    assert all(after <= before + 1 for before, after in pairs)


@pytest.mark.compute
def test_missing_pool_files_are_reported_and_no_examples_are_shown(dataset, tmp_path):
    view = view_dataset(dataset._replace(folder=tmp_path, store=tmp_path))
    assert (view.examples, view.quarantine) == ([], [])
    assert "cpt.parquet is garbled: No such file" in view.problem
    page = render_dataset(view)
    assert "No example can be shown: " in page
    assert "The import&#39;s folder is not in this store" in page or "The import's folder" in page


def test_a_long_table_keeps_the_most_frequent_rows_and_counts_the_rest(tmp_path):
    sources = {f"source {number}": number + 1 for number in range(50)}
    dataset = records.dataset().model_copy(update={"sources": sources})
    view = view_dataset(StoredDataSet(dataset, tmp_path, tmp_path))
    (table,) = [table for table in view.contents if table.title == "Sources"]
    assert (len(table.rows), table.num_omitted) == (40, 10)
    assert table.rows[0].label == "source 49"


def test_the_length_table_starts_at_the_first_nonempty_bucket(tmp_path):
    lengths = Lengths(turns=(0, 0, 3, 0, 1))
    dataset = DataSet.model_validate(records.dataset().model_dump() | {"lengths": lengths})
    view = view_dataset(StoredDataSet(dataset, tmp_path, tmp_path))
    assert rows(view.lengths, "Turns of a trajectory") == {"2 to 3": 3, "4 to 7": 0, "8 to 15": 1}
    assert [bucket(digits) for digits in (0, 1, 11)] == ["0", "1", "1,024 to 2,047"]


def test_masked_turns_and_redactions_are_counted_apart_from_filtered_trajectories(tmp_path):
    filtered = {"masked echo": 3, "redacted key": 2, "short trajectory": 1, "empty action": 0}
    dataset = records.dataset().model_copy(update={"filtered": filtered})
    losses = view_dataset(StoredDataSet(dataset, tmp_path, tmp_path)).losses
    assert rows(losses, "Masked") == {"masked echo": 3}
    assert rows(losses, "Replaced by placeholders") == {"redacted key": 2}
    assert rows(losses, "Left out by filters") == {"short trajectory": 1}
