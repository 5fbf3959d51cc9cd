import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld_console.table import Link, Listing, Part, csv_line


def cells(*row):
    return next(csv.reader(io.StringIO(csv_line(row), newline="")))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_formula_like_text_gets_an_apostrophe_in_csv(text):
    assert cells(text)[0][0] == "'"
    assert cells(Link(text, "/"))[0][0] == "'"


@given(st.text(alphabet=st.characters(), max_size=20))
def test_no_csv_cell_is_a_formula_or_contains_unprintable_characters(text):
    (cell,) = cells(text) if text else ("",)
    assert cell[:1] not in ("=", "+", "-", "@")
    assert all(c.isprintable() or c in "\n\t" for c in cell)


def test_numbers_stay_numbers():
    assert cells(-0.5, 3, None) == ["-0.5", "3", ""]


def test_csv_contains_the_full_text_of_a_shortened_cell():
    assert cells(Link("abc", "/abc", "abcdef")) == ["abcdef"]


def test_csv_contains_all_parts_of_a_listing():
    parts = {"": Part([(1,)], "a"), "a": Part([(2,)], "b"), "b": Part([(3,)])}
    lines = Listing("/x", ("number",), parts.__getitem__).csv()
    assert "".join(lines).split() == ["number", "1", "2", "3"]


def test_a_page_leaves_out_a_column_where_every_row_has_its_usual_value():
    part = Part([("a", "x", 0), ("b", "x", 1)])
    listing = Listing("/x", ("name", "tenant", "low"), lambda _: part, {"tenant": "x", "low": 0})
    assert listing.for_page(part) == (
        [("name", False), ("low", True)],
        [["a", 0], ["b", 1]],
    )
    assert "".join(listing.csv()).split() == ["name,tenant,low", "a,x,0", "b,x,1"]
