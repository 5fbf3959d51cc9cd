import asyncio

from agentworld.serving.episodes.store import OpenEpisode, OpenEpisodes
from make import records


def episode(name):
    return OpenEpisode(records.episode()._replace(id=name), [], ())


def keep(episodes, *names):
    return [episodes.keep(name, lambda name=name: episode(name)) for name in names]


def test_the_episodes_used_last_are_kept():
    episodes = OpenEpisodes(2)
    keep(episodes, "a", "b")
    episodes.get("a")
    keep(episodes, "c")
    assert episodes.get("b") is None
    assert episodes.get("a")
    assert len(episodes) == 2


def test_all_who_ask_for_an_episode_share_it():
    first, second = keep(OpenEpisodes(2), "a", "a")
    assert first is second


def test_an_episode_at_work_stays():
    async def work():
        episodes = OpenEpisodes(1)
        (busy,) = keep(episodes, "busy")
        async with busy.lock:
            keep(episodes, "other")
            assert episodes.get("busy") is busy
        keep(episodes, "third")
        assert episodes.get("busy") is None

    asyncio.run(work())


def test_an_episode_that_is_dropped_is_gone():
    episodes = OpenEpisodes(2)
    keep(episodes, "a")
    episodes.drop("a")
    episodes.drop("never there")
    assert episodes.get("a") is None
