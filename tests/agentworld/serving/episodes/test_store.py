import asyncio

from agentworld.serving.episodes.store import OpenEpisode, OpenEpisodes
from make import records


def episode(name):
    return OpenEpisode(records.episode()._replace(id=name), [], ())


def keep(episodes, *names):
    return [episodes.keep(name, lambda name=name: episode(name)) for name in names]


def test_the_most_recently_used_episodes_are_kept():
    episodes = OpenEpisodes(2)
    keep(episodes, "a", "b")
    episodes.get("a")
    keep(episodes, "c")
    assert episodes.get("b") is None
    assert episodes.get("a")
    assert len(episodes) == 2


def test_callers_of_the_same_episode_share_one_object():
    first, second = keep(OpenEpisodes(2), "a", "a")
    assert first is second


def test_a_locked_episode_is_not_evicted():
    async def work():
        episodes = OpenEpisodes(1)
        (busy_episode,) = keep(episodes, "busy")
        async with busy_episode.lock:
            keep(episodes, "other")
            assert episodes.get("busy") is busy_episode
        keep(episodes, "third")
        assert episodes.get("busy") is None

    asyncio.run(work())


def test_a_dropped_episode_is_no_longer_cached():
    episodes = OpenEpisodes(2)
    keep(episodes, "a")
    episodes.drop("a")
    episodes.drop("never there")
    assert episodes.get("a") is None


def test_all_episodes_of_a_run_are_dropped_together():
    episodes = OpenEpisodes(3)
    keep(episodes, "a", "b")
    episodes.drop_run("another")
    assert len(episodes) == 2
    episodes.drop_run("r")
    assert len(episodes) == 0
