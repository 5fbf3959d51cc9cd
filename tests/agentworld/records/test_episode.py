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


def test_a_task_overrides_the_initial_state_and_the_turn_limit():
    opening = EpisodeOpening(run="r", task=records.task(), initial_state="other", turn_limit=99)
    assert (opening.start, opening.limit) == (
        records.task().initial_state,
        records.task().turn_limit,
    )


ANY_TEXT = st.text(st.characters(), max_size=5)  # lone surrogates too
TEXTS = st.lists(ANY_TEXT, min_size=1, max_size=5)


@given(TEXTS)
def test_an_episode_is_intact_and_another_step_changes_its_head(observations):
    original = records.episode(*observations)
    assert original.intact
    assert records.episode(*observations, "more").head != original.head


def _replace_step(steps, index, **fields):
    return (*steps[:index], steps[index]._replace(**fields), *steps[index + 1 :])


@given(TEXTS, st.data())
def test_a_changed_step_breaks_the_chain(observations, data):
    original = records.episode(*observations)
    index = data.draw(st.integers(0, len(observations) - 1))
    new_texts = {"observation": "exchanged", "observation_digest": text_digest("exchanged")}
    for fields in (new_texts, {"observation": "exchanged"}, {"reward": 1.0}, {"done": True}):
        assert not original._replace(steps=_replace_step(original.steps, index, **fields)).intact


@given(TEXTS, st.data())
def test_a_missing_step_breaks_the_chain(observations, data):
    original = records.episode(*observations, "last")
    index = data.draw(st.integers(0, len(observations) - 1))
    assert not original._replace(steps=original.steps[:index] + original.steps[index + 1 :]).intact


@given(TEXTS)
def test_a_chain_without_texts_is_intact(observations):
    original = records.episode(*observations)
    erased_steps = tuple(step._replace(action=None, observation=None) for step in original.steps)
    assert original._replace(steps=erased_steps).intact


@given(ANY_TEXT)
def test_any_text_is_restored_from_its_bytes(text):
    assert text_of(text_bytes(text)) == text


def test_a_changed_opening_breaks_the_chain():
    assert not records.episode("a")._replace(opening=EpisodeOpening(run="other")).intact


def test_new_names_are_unique_version_7_uuids():
    names = [new_name() for _ in range(1_000)]
    assert len(set(names)) == 1_000
    assert {(uuid.UUID(name).version, uuid.UUID(name).variant) for name in names} == {
        (7, uuid.RFC_4122)
    }


def test_new_names_sort_by_time(monkeypatch):
    clock = iter([1_700_000_000_000_000_000, 1_700_000_000_001_000_000])
    monkeypatch.setattr(episode.time, "time_ns", lambda: next(clock))
    assert new_name() < new_name()


def test_an_opening_that_is_both_a_fork_and_a_replay_is_refused():
    source = Source(episode="e", step=1)
    with pytest.raises(ValidationError, match="both a fork and a replay; give only one"):
        EpisodeOpening(run="r", fork=source, replay=source)
