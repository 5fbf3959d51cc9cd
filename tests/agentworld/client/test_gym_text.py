import json
from copy import deepcopy

import numpy as np
import pytest
from gymnasium.spaces import Tuple
from gymnasium.vector.utils import batch_space
from hypothesis import given
from hypothesis import strategies as st

from agentworld.client.gym import UnicodeText
from agentworld.errors import InputError

TEXTS = st.text(st.characters(exclude_categories=()))


@given(TEXTS, st.integers(0, 40))
def test_the_space_contains_only_texts_up_to_its_maximum_length(text, max_length):
    assert (text in UnicodeText(max_length)) is (len(text) <= max_length)


@pytest.mark.parametrize("text", ["", "\x00\x1b[2J", "\U0001f600", "\ud800", np.str_("ls")])
def test_any_text_is_in_the_space(text):
    assert text in UnicodeText()


@pytest.mark.parametrize("value", [None, 3, b"ls", ["l", "s"], ("ls",)])
def test_a_value_that_is_no_text_is_not_in_the_space(value):
    assert value not in UnicodeText()


@given(st.integers(0, 80), st.integers(0, 2**32))
def test_a_sample_is_valid_unicode_and_in_the_space(max_length, seed):
    space = UnicodeText(max_length, seed=seed)
    for _ in range(4):
        text = space.sample()
        assert text in space
        assert text.encode().decode() == text


def test_samples_include_empty_texts_control_characters_and_high_planes():
    space = UnicodeText(seed=0)
    texts = [space.sample() for _ in range(400)]
    characters = "".join(texts)
    assert min(map(len, texts)) == 0
    assert min(characters) < " "
    assert max(characters) > "\uffff"
    assert "e" in characters


@given(st.integers(0, 2**32))
def test_equal_seeds_draw_equal_texts(seed):
    first, second = UnicodeText(seed=seed), UnicodeText()
    second.seed(seed)
    assert [first.sample() for _ in range(3)] == [second.sample() for _ in range(3)]


@given(st.lists(TEXTS))
def test_texts_survive_a_round_trip_through_json(texts):
    space = UnicodeText()
    document = json.dumps(space.to_jsonable(texts))
    assert space.from_jsonable(json.loads(document)) == texts


def test_json_does_not_merge_two_surrogates_into_one_character():
    halves = "\ud83d\ude00"
    document = json.dumps(UnicodeText().to_jsonable([halves, "\U0001f600"]))
    assert UnicodeText().from_jsonable(json.loads(document)) == [halves, "\U0001f600"]


def test_spaces_of_one_length_are_equal():
    assert UnicodeText(3) == UnicodeText(3, seed=1) == deepcopy(UnicodeText(3))
    assert UnicodeText(3) != UnicodeText(4)
    assert len({UnicodeText(3), UnicodeText(3), UnicodeText(4)}) == 2
    assert repr(UnicodeText(3)) == "UnicodeText(3)"


def test_a_batched_space_samples_a_tuple_of_different_texts():
    batch = batch_space(UnicodeText(seed=0), 3)
    assert batch == Tuple([UnicodeText()] * 3)
    texts = batch.sample()
    assert texts in batch
    assert len(set(texts)) == 3


@pytest.mark.parametrize("arguments", [{"mask": ()}, {"probability": ()}])
def test_sampling_with_a_mask_or_a_probability_is_refused(arguments):
    with pytest.raises(InputError, match="leave it out"):
        UnicodeText().sample(**arguments)


def test_a_negative_maximum_length_is_refused():
    with pytest.raises(InputError, match="-1 characters"):
        UnicodeText(-1)
