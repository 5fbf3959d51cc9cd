import asyncio

from agentworld.serving.episodes.store import OpenEpisode, OpenEpisodes
from make import records


def episode(name, *texts):
    history = [{"role": "user", "content": text} for text in texts]
    return OpenEpisode(records.episode()._replace(id=name), history, ())


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


def test_long_episodes_are_kept_up_to_a_number_of_bytes():
    episodes = OpenEpisodes(9, most_bytes=50_000)
    for name in "abc":
        episodes.keep(name, lambda name=name: episode(name, "x" * 10_000))
    assert [bool(episodes.get(name)) for name in "abc"] == [False, True, True]
    episodes.drop("b")
    keep(episodes, "d", "e")
    assert len(episodes) == 3


def test_a_step_that_makes_an_episode_long_evicts_older_ones():
    episodes = OpenEpisodes(9, most_bytes=50_000)
    _, grown = keep(episodes, "a", "b")
    message = {"role": "assistant", "content": "\N{GRINNING FACE}" * 10_000}
    episodes.add(grown, records.episode("kolu").steps[0], [message])
    assert [bool(episodes.get(name)) for name in "ab"] == [False, True]
    keep(episodes, "c")
    assert [bool(episodes.get(name)) for name in "bc"] == [False, True]


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
