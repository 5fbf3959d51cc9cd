"""The tables of docs/benchmarks.md, from JSON in this file."""

from pathlib import Path

import pytest

from benchmarks.page import GRIDS, page, read_figures
from benchmarks.targets import TARGETS, figures_of

ROOT = Path(__file__).parents[2]
RUN = {
    "command": "make bench-pipelines",
    "machine": {"processor": "EPYC", "cores": 2, "memory_gib": 23.5, "load_average": 0.08},
    "commit": "6b092d773053824842e8866bbafd2c847d81cd61",
    "overhead_p50_seconds": 2.5,
    "overhead_p50_seconds_interval": [2.25, 2.75],
    "bytes_copied_between_steps": 0,
    "missed": ["overhead_p50_seconds"],
}
TEXT = """\
<!-- figures all: -->
<!-- end of figures -->
before
<!-- figures pipelines: -->
by hand
<!-- end of figures -->
between
<!-- figures operator: -->
by hand too
<!-- end of figures -->
"""


def test_a_table_shows_value_bound_and_meaning_and_the_missed_figures():
    lines = page(TEXT, {"pipelines": RUN}).splitlines()
    assert (
        "Measured by `make bench-pipelines` at commit `6b092d773053` on EPYC, 2 cores, 24 GiB, with"
        " a load of 0.1 at the start. Missed: `overhead_p50_seconds`."
    ) in lines
    row = "| `overhead_p50_seconds` | 2.5 (2.25 to 2.75) | at most 2: **missed** |  |"
    assert f"{row} the overhead of a step, median |" in lines
    row = "| `bytes_copied_between_steps` | 0 | at most 0 |  |"
    assert f"{row} steps pass on folders by name |" in lines
    assert "by hand" not in lines


def test_a_benchmark_without_json_keeps_its_table_and_is_marked_unmeasured():
    text = page(TEXT, {"pipelines": RUN})
    assert "\nby hand too\n" in text
    assert "| [operator](#operator) | `make bench-operator` | see there | not measured since |" in (
        text
    )
    row = "| [pipelines](#pipelines) | `make bench-pipelines` | EPYC, 2 cores, 24 GiB |"
    assert f"{row} `overhead_p50_seconds` |" in text


def test_missed_figures_of_an_earlier_run_are_read_from_its_text():
    text = TEXT.replace("by hand too", "Missed: `memory_mib` 310 (at most 300).")
    row = "| [operator](#operator) | `make bench-operator` | see there |"
    assert f"{row} an earlier run: `memory_mib` 310 (at most 300) |" in page(text, {})


def test_a_dirty_commit_is_shown_with_uncommitted_changes():
    run = {**RUN, "commit": f"{RUN['commit']}-dirty"}
    assert "at commit `6b092d773053` with uncommitted changes on EPYC" in page(
        TEXT, {"pipelines": run}
    )


def test_writing_a_page_again_changes_nothing():
    text = page(TEXT, {"pipelines": RUN})
    assert page(text, {"pipelines": RUN}) == text


def test_a_goal_that_is_not_reached_is_no_missed_bound():
    run = {**RUN, "ratio_map_light": 2.0}
    text = page("<!-- figures data: -->\n<!-- end of figures -->", {"data": run})
    assert "| `ratio_map_light` | 2 | at least 1.5 | at least 3: not reached |" in text


def test_rows_and_columns_without_a_figure_are_left_out():
    run = {**RUN, "rates": {"core": {"p50_ms": 4.9}, "http": {"p50_ms": 24.3}}}
    text = page("<!-- figures protocols: -->\n<!-- end of figures -->", {"protocols": run})
    table = "| protocol | p50 ms |\n| --- | ---: |\n| `core` | 4.9 |\n| `http` | 24.3 |\n"
    assert table in text
    assert "healthy clients" not in text.partition(table)[2]


def test_a_full_run_without_a_bounded_figure_is_refused():
    with pytest.raises(KeyError, match="bytes_copied"):
        figures_of("pipelines", {"overhead_p50_seconds": 1.0})
    figures = figures_of("pipelines", {"overhead_p50_seconds": 1.0}, is_part=True)
    assert [figure.name for figure in figures] == ["overhead_p50_seconds"]


def test_a_list_of_errors_counts_by_its_length():
    storm = {"healthy_errors": ["a", "b"]}
    [errors] = figures_of("protocols", {"storm": storm}, is_part=True)
    assert (errors.name, errors.value, errors.holds) == ("storm.healthy_errors", 2.0, False)


def test_every_benchmark_with_a_table_has_a_place_in_the_page():
    text = (ROOT / "docs/benchmarks.md").read_text()
    assert {*TARGETS, *GRIDS} == {
        name for name in {*TARGETS, *GRIDS} if f"<!-- figures {name}: " in text
    }


def test_the_page_shows_the_published_figures():
    path = ROOT / "docs/benchmarks.md"
    assert page(path.read_text(), read_figures(ROOT / "docs/figures")) == path.read_text()
