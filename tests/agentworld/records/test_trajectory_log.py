import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.records.trajectory_log import (
    Sampled,
    TrajectoryBegin,
    TrajectoryEnd,
    TrajectoryStep,
    read_line,
    trajectory_lines,
    write_line,
)
from make import records

ANY_TEXT = st.text(st.characters())  # NUL and lone surrogates too
DIGESTS = st.sampled_from([records.digest("a"), records.digest("b")])
COUNTS = st.integers(0, 2**63 - 1)
POSITION = {"run": st.text("ab01"), "episode": st.text("ab01"), "step": COUNTS}
LINES = st.one_of(
    st.builds(TrajectoryBegin, **POSITION, simulator=DIGESTS, task=st.none() | ANY_TEXT),
    st.builds(
        TrajectoryStep,
        **POSITION,
        simulator=DIGESTS,
        policy=st.none() | DIGESTS,
        policy_step=st.none() | COUNTS,
        sampled=ANY_TEXT,
        action=ANY_TEXT,
        reward=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        observation_digest=DIGESTS,
        low_confidence=st.booleans(),
    ),
    st.builds(TrajectoryEnd, **POSITION, reason=st.sampled_from(["done", "limit", "closed"])),
)


def round_trip_json(line):
    """JSON joins two halves of a surrogate pair into one character."""
    return type(line)(**json.loads(json.dumps(line._asdict())))


@given(LINES)
def test_a_line_is_read_back_unchanged(line):
    assert read_line(write_line(line)) == round_trip_json(line)


@given(LINES)
def test_a_line_is_ascii_and_ends_with_its_only_newline(line):
    data = write_line(line)
    assert data.isascii()
    assert data.index(b"\n") == len(data) - 1


STEP = TrajectoryStep(
    run="r",
    episode="e",
    step=1,
    simulator=records.digest("s"),
    policy=None,
    policy_step=None,
    sampled="ls",
    action="ls",
    reward=None,
    observation_digest=records.digest("o"),
    low_confidence=False,
)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run", 5),
        ("run", "a\nb"),
        ("episode", None),
        ("step", -1),
        ("step", True),
        ("step", "1"),
        ("simulator", "sha256:00"),
        ("simulator", records.digest("s") + "\n"),
        ("policy", "the best"),
        ("policy_step", 0.5),
        ("sampled", None),
        ("action", ["ls"]),
        ("reward", "1"),
        ("reward", float("nan")),
        ("reward", 10**400),
        ("observation_digest", None),
        ("low_confidence", 0),
    ],
)
def test_an_invalid_field_is_reported_by_name(field, value):
    fields = {"kind": "step", **STEP._asdict(), field: value}
    with pytest.raises(ValueError, match=f"{field}: "):
        read_line(json.dumps(fields).encode())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", "kind is none of"),
        (b"{}", "kind is none of"),
        (b'{"kind": ["step"]}', "kind is none of"),
        (b'{"kind": "end"}', "has exactly the fields run, episode, step, reason"),
        (b"\x00\x00", None),
        (b"\xff", None),
    ],
)
def test_an_invalid_line_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        read_line(data)


def test_the_last_step_is_followed_by_the_end_of_its_episode():
    step, end = trajectory_lines(records.step_result(done=True), "ls", Sampled("ls"))
    assert isinstance(step, TrajectoryStep)
    assert end == TrajectoryEnd("r", "e", 1, "done")
    _, limit_end = trajectory_lines(
        records.step_result(done=True, truncated=True), "ls", Sampled("ls")
    )
    assert limit_end == TrajectoryEnd("r", "e", 1, "limit")


def test_a_step_before_the_last_gives_only_a_step_line():
    result = records.step_result(low_confidence=True)
    (line,) = trajectory_lines(result, "ls", Sampled("ls", records.digest("w"), 3))
    assert (line.policy, line.policy_step, line.low_confidence) == (records.digest("w"), 3, True)
