import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentworld.rendering.messages import with_thought
from agentworld.rendering.parse import parse_observation

PLAIN = st.text(alphabet="ab \n[0]~/$.", max_size=60)
TAGS = st.sampled_from(
    ["<think>", "</think>", "<predicted_observation>", "</predicted_observation>", "a", "\n", " "]
)


@pytest.mark.parametrize(
    ("text", "observation"),
    [
        ("besa\n[0] ~", "besa\n[0] ~"),
        ("<think>hm</think>besa", "besa"),
        ("hm</think>besa", "besa"),
        ("<think>hm", None),
        ("<think>a</think><think>b</think>", None),
        ("<predicted_observation>besa</predicted_observation>", "besa"),
        ("so:\n<predicted_observation>\nbesa\n", "besa\n"),
        (
            "<predicted_observation>a</predicted_observation>"
            "<predicted_observation>b</predicted_observation>",
            "b",
        ),
        ("<THINK>hm</THINK>besa", "besa"),
        ("", None),
        ("\n\n", None),
        (" \n", None),
        ("\nbesa\n[0] ~\n", "\nbesa\n[0] ~\n"),
        ("a < b\n", "a < b\n"),
        ("<think>hm</think>\n\nbesa\n", "besa\n"),
        ("<think>hm</think>\nbesa", "besa"),
        ("<think>hm</think>\n\n\nbesa", "\nbesa"),
        ("<think>hm</think>\n\n", None),
        ("hm</think>\n\nbesa", "besa"),
        ("<predicted_observation>\nbesa\n</predicted_observation>", "besa"),
        ("<predicted_observation>\n\nbesa\n\n</predicted_observation>\n", "\nbesa\n"),
        ("<predicted_observation>\n</predicted_observation>", None),
        ("<predicted_observation>besa\n", "besa\n"),
        ("  besa ", "  besa "),
    ],
)
def test_an_observation_is_parsed_without_thoughts_and_tags(text, observation):
    assert parse_observation(text) == observation


@given(PLAIN)
def test_a_text_without_tags_is_parsed_unchanged(text):
    assert parse_observation(text) == (text if text.strip() else None)


@given(PLAIN)
def test_one_line_break_at_each_end_inside_the_tags_is_removed(text):
    block = f"<predicted_observation>\n{text}\n</predicted_observation>"
    assert parse_observation(block) == (text if text.strip() else None)


@pytest.mark.compute
@given(PLAIN, PLAIN)
def test_a_thought_before_an_observation_changes_nothing(thought, text):
    assume(not text.startswith("\n"))  # the line breaks of a chat template belong to the thought
    assert parse_observation(with_thought(thought, text)) == parse_observation(text)
    assert parse_observation(f"<think>{thought}</think>\n\n{text}") == parse_observation(text)


@given(st.lists(TAGS, max_size=12).map("".join))
def test_an_observation_is_never_empty_and_contains_no_closing_think_tag(text):
    observation = parse_observation(text)
    assert observation != ""
    if observation is not None:
        assert "</think>" not in observation
        assert parse_observation(observation) in (observation, None)
