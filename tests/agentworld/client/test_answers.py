import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.client.answers import read_episode, read_failure, read_step
from agentworld.http.schemas import write_episode, write_step
from make import records

TEXTS = st.lists(st.text(st.characters(exclude_categories=())), max_size=4)


@given(st.text())
def test_a_step_is_read_as_it_was_written(observation):
    result = records.step_result(observation=observation, reward=0.5, mean_logprob=-1.25)
    assert read_step(write_step(result), "e", 1) == result


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("simulator", None),
        ("run", 5),
        ("episode", ["e"]),
        ("step", True),
        ("step", "1"),
        ("observation", None),
        ("observation", ["ls"]),
        ("done", 1),
        ("truncated", None),
        ("low_confidence", "no"),
        ("reward", "1"),
        ("reward", float("nan")),
        ("reward", True),
        ("mean_logprob", float("inf")),
        ("agreement", []),
    ],
)
def test_a_step_with_an_invalid_field_is_rejected(field, value):
    fields = {**records.step_result()._asdict(), field: value}
    with pytest.raises(ValueError, match=f"{field}: "):
        read_step(json.dumps(fields).encode(), "e", 1)


@given(TEXTS)
def test_an_episode_is_read_as_it_was_written(observations):
    texts = json.loads(json.dumps(observations))
    episode = records.episode(*texts)
    assert read_episode(write_episode(episode)) == episode


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda fields: fields["steps"].pop(0), "do not follow"),
        (lambda fields: fields["steps"][0].update(observation="other"), "do not follow"),
        (lambda fields: fields["steps"][0].update(observation=5), "is no episode"),
        (lambda fields: fields["steps"][0].pop("head"), "do not follow"),
        (lambda fields: fields["steps"][0].update(confidence=None), "is no episode"),
        (lambda fields: fields.update(head=records.digest("other")), "do not follow"),
        (lambda fields: fields.update(opening={"run": 5}), "run"),
        (lambda fields: fields.pop("simulator"), "is no episode"),
    ],
)
def test_a_changed_episode_is_rejected(change, words):
    fields = json.loads(write_episode(records.episode("a", "b")))
    change(fields)
    with pytest.raises(ValueError, match=words):
        read_episode(json.dumps(fields).encode())


@pytest.mark.parametrize("body", [b"[]", b"5", b"<html>"])
def test_a_body_that_is_no_json_object_is_rejected(body):
    with pytest.raises(ValueError):  # noqa: PT011  the caller adds whose answer it was
        read_episode(body)


def test_a_failure_with_an_unreadable_body_is_shown_as_printable_text():
    error = read_failure(503, b"\xff\x1b[2J bad\ngateway")
    assert (error.kind, error.retryable) == ("protocol", True)
    assert str(error).isprintable()
