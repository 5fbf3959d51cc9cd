import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.cluster.records.serving import Bounds, Serving
from agentworld_operator.policy.scaling import Scale, choose_scale

BOUNDED = Serving(bounds=Bounds(min=0, max=4, episodes_per_replica=10, idle_seconds=60))


def test_an_engine_without_bounds_has_the_requested_replicas():
    assert choose_scale(Serving(replicas=3), Scale(1), 500, now=0) == Scale(3)


def test_a_suspended_engine_has_no_replicas_despite_open_episodes():
    suspended_serving = BOUNDED.model_copy(update={"suspend": True})
    assert choose_scale(suspended_serving, Scale(4), 40, now=0) == Scale(0)


def test_the_first_open_episode_starts_an_engine_at_once():
    assert choose_scale(BOUNDED, Scale(0), 1, now=0) == Scale(1)


def test_open_episodes_determine_the_replicas_up_to_the_maximum():
    assert choose_scale(BOUNDED, Scale(0), 21, now=0) == Scale(3)
    assert choose_scale(BOUNDED, Scale(0), 500, now=0) == Scale(4)


def test_replicas_are_removed_after_the_whole_idle_time():
    idle_scale = choose_scale(BOUNDED, Scale(3), 0, now=100)
    assert idle_scale == Scale(3, idle_since=100)
    assert choose_scale(BOUNDED, idle_scale, 0, now=159) == idle_scale
    assert choose_scale(BOUNDED, idle_scale, 0, now=160) == Scale(0)


def test_an_episode_restarts_the_idle_time():
    idle_scale = choose_scale(BOUNDED, Scale(1), 0, now=100)
    busy_scale = choose_scale(BOUNDED, idle_scale, 3, now=150)
    assert choose_scale(BOUNDED, busy_scale, 0, now=165) == Scale(1, idle_since=165)


def test_an_unknown_episode_count_removes_no_replica():
    idle_scale = Scale(2, idle_since=0)
    assert choose_scale(BOUNDED, idle_scale, None, now=1_000) == Scale(2)


@pytest.mark.compute
@given(
    least=st.integers(0, 5),
    more=st.integers(1, 5),
    episode_counts=st.lists(st.none() | st.integers(0, 200), max_size=30),
)
def test_replicas_stay_within_bounds_and_suffice_for_open_episodes(least, more, episode_counts):
    bounds = Bounds(min=least, max=least + more, episodes_per_replica=7, idle_seconds=20)
    serving, current = Serving(bounds=bounds), Scale(0)
    for now, episodes in enumerate(episode_counts):
        current = choose_scale(serving, current, episodes, now=now * 10.0)
        assert bounds.min <= current.replicas <= bounds.max
        if episodes is not None:
            assert current.replicas == bounds.max or current.replicas * 7 >= episodes
