"""Episodes are recorded with the accelerators of their engine."""

import pytest

from agentworld.records.episode import EpisodeOpening

H100, H200 = ("1 x H100",), ("1 x H200",)


@pytest.fixture
def accelerators():
    """The engine's accelerators, which a test may change."""
    return list(H100)


@pytest.fixture
def served(serve, accelerators):
    return serve(accelerators=lambda: tuple(accelerators))


def opening(served, episode):
    return served.ledger.episode(episode).opening


def test_an_opening_records_the_accelerators_of_the_engine(served, accelerators):
    first = served.reset()
    accelerators[:] = H200
    second = served.reset()
    assert [opening(served, episode).accelerators for episode in (first, second)] == [H100, H200]
    assert served.ledger.episode(first).intact


def test_an_opening_without_known_accelerators_has_no_accelerators_field(serve):
    served = serve()
    run = served.run()
    episode = served.ledger.episode(served.reset(run))
    assert episode.opening == EpisodeOpening(run=run, domain="shell")
    assert "accelerators" not in episode.opening.text


def test_a_caller_cannot_set_the_accelerators(served):
    body = {"run": served.run(), "accelerators": ["1 x H100"]}
    answer = served.http("POST", "/episodes", body)
    assert answer.status_code == 422
    assert "accelerators are recorded by the service" in answer.text


def test_a_repeated_reset_on_other_accelerators_returns_the_same_episode(served, accelerators):
    body, key = {"run": served.run()}, {"idempotency_key": "a" * 32}
    first = served.http("POST", "/episodes", body, **key)
    accelerators[:] = H200
    second = served.http("POST", "/episodes", body, **key)
    assert (second.status_code, second.json()) == (first.status_code, first.json())
    third = served.http("POST", "/episodes", {**body, "turn_limit": 3}, **key)
    assert third.status_code == 409


def test_a_fork_records_current_accelerators_and_a_replay_those_of_its_source(served, accelerators):
    run = served.run()
    source = served.reset(run)
    assert served.step(source, "echo a", 1).status_code == 200
    accelerators[:] = H200
    reference = {"episode": source, "step": 1}
    assert opening(served, served.reset(run, fork=reference)).accelerators == H200
    assert opening(served, served.reset(run, replay=reference)).accelerators == H100
