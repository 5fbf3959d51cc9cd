import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agentworld.records import episode
from agentworld.records.episode import (
    EpisodeOpening,
    Source,
    new_name,
    text_bytes,
    text_digest,
    text_of,
)
from make import records


def test_a_task_brings_its_own_start_and_limit():
    opening = EpisodeOpening(run="r", task=records.task(), initial_state="other", turn_limit=99)
    assert (opening.start, opening.limit) == (
        records.task().initial_state,
        records.task().turn_limit,
    )


ANY_TEXT = st.text(st.characters(), max_size=5)  # lone surrogates too
TEXTS = st.lists(ANY_TEXT, min_size=1, max_size=5)


@given(TEXTS)
def test_an_episode_is_intact_and_its_head_names_all_of_it(observations):
    made = records.episode(*observations)
    assert made.intact
    assert records.episode(*observations, "more").head != made.head


def _broken(steps, place, **fields):
    return (*steps[:place], steps[place]._replace(**fields), *steps[place + 1 :])


@given(TEXTS, st.data())
def test_an_exchanged_observation_breaks_the_chain(observations, data):
    made = records.episode(*observations)
    place = data.draw(st.integers(0, len(observations) - 1))
    texts = {"observation": "exchanged", "observation_digest": text_digest("exchanged")}
    for fields in (texts, {"observation": "exchanged"}, {"reward": 1.0}, {"done": True}):
        assert not made._replace(steps=_broken(made.steps, place, **fields)).intact


@given(TEXTS, st.data())
def test_a_step_that_is_left_out_breaks_the_chain(observations, data):
    made = records.episode(*observations, "last")
    place = data.draw(st.integers(0, len(observations) - 1))
    assert not made._replace(steps=made.steps[:place] + made.steps[place + 1 :]).intact


@given(TEXTS)
def test_a_chain_holds_without_its_texts(observations):
    made = records.episode(*observations)
    erased = tuple(step._replace(action=None, observation=None) for step in made.steps)
    assert made._replace(steps=erased).intact


@given(ANY_TEXT)
def test_a_text_of_any_kind_is_the_same_after_its_bytes(text):
    assert text_of(text_bytes(text)) == text


def test_an_exchanged_opening_breaks_the_chain():
    assert not records.episode("a")._replace(opening=EpisodeOpening(run="other")).intact


def test_a_name_is_a_uuid_of_version_7_that_nobody_has_yet():
    names = [new_name() for _ in range(1_000)]
    assert len(set(names)) == 1_000
    assert {(uuid.UUID(name).version, uuid.UUID(name).variant) for name in names} == {
        (7, uuid.RFC_4122)
    }


def test_names_are_in_the_order_of_time(monkeypatch):
    clock = iter([1_700_000_000_000_000_000, 1_700_000_000_001_000_000])
    monkeypatch.setattr(episode.time, "time_ns", lambda: next(clock))
    assert new_name() < new_name()


def test_an_episode_has_one_past():
    source = Source(episode="e", step=1)
    with pytest.raises(ValidationError, match="both a fork and a replay; give only one"):
        EpisodeOpening(run="r", fork=source, replay=source)
