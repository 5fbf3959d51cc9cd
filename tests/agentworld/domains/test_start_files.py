import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.domains.start_files import describe_files, make_files, parse_files
from agentworld.domains.words import episode_words

word = st.text("abc", min_size=1, max_size=4)
path = st.builds(lambda folder, name: f"{folder}{name}.txt", st.sampled_from(["", "d/"]), word)
line = st.lists(word, min_size=1, max_size=3).map(" ".join)
content = st.lists(line, max_size=3).map(lambda lines: "".join(f"{text}\n" for text in lines))


@pytest.mark.waits
@given(st.dictionaries(path, content, max_size=4))
def test_described_files_are_parsed_to_the_same_files(files):
    assert parse_files(describe_files(files)) == files


@given(st.integers(), st.booleans())
def test_every_generated_start_is_parsed_to_the_same_files(seed, held_out):
    rng = random.Random(seed)
    files = make_files(rng, episode_words(rng, held_out=held_out))
    assert parse_files(describe_files(files)) == files


def test_no_files_are_described_by_an_empty_text():
    assert describe_files({}) == ""
    assert parse_files("") == {}


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"b.txt": "x\n", "a.txt": "y z\nw\n"}, "a.txt: y z / w\nb.txt: x"),
        ({"new/": ""}, "new/: "),
        ({"a.txt": ""}, "a.txt: "),
    ],
    ids=["sorted", "an empty folder", "an empty file"],
)
def test_each_file_is_one_line(files, text):
    assert describe_files(files) == text
    assert parse_files(text) == files
