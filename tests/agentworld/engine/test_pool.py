"""The choice of a pool's replica: the first one, and after failures."""

import asyncio
from collections import Counter

import pytest

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.engine.fake import FakeEngine
from agentworld.engine.pool import EnginePool
from agentworld.engine.replica import Replica
from agentworld.errors import EngineError, InputError
from agentworld.records.simulator import Sampling

MESSAGES, SAMPLING = [{"role": "user", "content": "ls"}], Sampling()
NAMES = [f"http://10.0.0.{number}:8000" for number in range(4)]
EPISODES = [f"episode-{number}" for number in range(2_000)]


class Site:
    """Replicas of an engine that respond with their names, or fail as in `failing`."""

    def __init__(self, names=NAMES):
        self.failing = {}
        self.engines = {name: FakeEngine(self._answer(name)) for name in names}

    def _answer(self, name):
        return lambda _: self.failing.get(name, name)

    def ask(self, *episodes):
        pool = EnginePool(
            lambda url: Replica(url, self.engines[url], concurrency=1), urls=self.engines
        )

        async def work():
            requests = (CompletionRequest(MESSAGES, SAMPLING, affinity=name) for name in episodes)
            return [(await pool.complete(request)).text for request in requests]

        return asyncio.run(work())

    def homes(self):
        """The replica of each episode."""
        return dict(zip(EPISODES, self.ask(*EPISODES), strict=True))


def test_an_episode_stays_with_its_replica():
    for episode in EPISODES[:20]:
        assert len(set(Site().ask(*[episode] * 20))) == 1


def test_separate_pools_choose_the_same_replica_for_an_episode():
    assert Site().homes() == Site(NAMES[::-1]).homes()


def test_episodes_are_spread_evenly_over_the_replicas():
    shares = Counter(Site().homes().values())
    assert set(shares) == set(NAMES)
    assert all(400 < share < 600 for share in shares.values())


def test_removing_a_replica_moves_only_its_episodes_to_all_other_replicas():
    before, after = Site().homes(), Site(NAMES[1:]).homes()
    moved_episodes = {episode for episode in EPISODES if before[episode] != after[episode]}
    assert moved_episodes == {episode for episode in EPISODES if before[episode] == NAMES[0]}
    assert {after[episode] for episode in moved_episodes} == set(NAMES[1:])


def test_requests_without_an_episode_use_all_replicas():
    assert set(Site().ask(*[""] * 50)) == set(NAMES)


@pytest.mark.parametrize("kind", ["engine", "slow", "open", "capacity"])
def test_an_episode_leaves_its_replica_only_while_the_replica_fails(kind):
    site = Site()
    (home,) = site.ask("e")
    site.failing[home] = EngineError("gone", kind=kind)
    (refuge,) = site.ask("e")
    assert refuge != home
    site.failing.clear()
    assert site.ask("e") == [home]


@pytest.mark.parametrize("kind", ["refused", "context", "cut-off", "unparsable"])
def test_an_error_independent_of_the_replica_is_not_retried(kind):
    site = Site()
    site.failing = dict.fromkeys(NAMES, EngineError("no", kind=kind))
    with pytest.raises(EngineError) as error:
        site.ask("e")
    assert error.value.kind == kind
    assert sum(len(engine.requests) for engine in site.engines.values()) == 1


@pytest.mark.parametrize(
    ("pauses", "retry_after"), [((9.0, None, 2.0, 5.0), 2.0), ((None, None, None, None), None)]
)
def test_when_all_replicas_fail_the_error_has_the_shortest_retry_after(pauses, retry_after):
    site = Site()
    for name, pause in zip(NAMES, pauses, strict=True):
        site.failing[name] = EngineError("gone", retry_after_seconds=pause)
    with pytest.raises(EngineError) as error:
        site.ask("e")
    assert error.value.retry_after_seconds == retry_after
    assert all(len(engine.requests) == 1 for engine in site.engines.values())


def test_a_replica_with_an_open_breaker_gets_no_requests():
    site = Site()
    (home,) = site.ask("e")
    site.failing[home] = EngineError("gone")
    site.engines[home].requests.clear()
    site.ask(*["e"] * 20)
    assert len(site.engines[home].requests) == 5


def test_a_pool_forwards_the_request_and_closes_all_replicas():
    closed_engines = []

    class ClosingEngine(FakeEngine):
        async def close(self):
            closed_engines.append(self)

    async def work():
        engine = ClosingEngine(lambda _: Completion("besa", 3, 2, "stop", -0.5))
        pool = EnginePool(lambda url: Replica(url, engine, concurrency=1), urls=["one", "other"])
        completion = await pool.complete(CompletionRequest(MESSAGES, SAMPLING, 7, "e"))
        await pool.close()
        with pytest.raises(EngineError, match="connect again"):
            await pool.complete(CompletionRequest(MESSAGES, SAMPLING))
        return completion, engine

    completion, engine = asyncio.run(work())
    assert completion._replace(queued_seconds=0.0) == Completion("besa", 3, 2, "stop", -0.5)
    assert engine.requests == [(MESSAGES, SAMPLING, 7, "e")]
    assert closed_engines == [engine, engine]


def test_an_engine_without_replicas_is_refused():
    with pytest.raises(InputError, match="name at least one"):
        EnginePool(pytest.fail)
