"""Episodes are recorded with what their engine computed on."""

import pytest

from agentworld.records.episode import EpisodeOpening

H100, H200 = ("1 x H100",), ("1 x H200",)


@pytest.fixture
def here():
    """The engine's accelerators, which a test may change."""
    return list(H100)


@pytest.fixture
def served(serve, here):
    return serve(accelerators=lambda: tuple(here))


def opening(served, episode):
    return served.ledger.episode(episode).opening


def test_an_opening_records_the_accelerators_of_the_engine(served, here):
    first = served.reset()
    here[:] = H200
    second = served.reset()
    assert [opening(served, each).accelerators for each in (first, second)] == [H100, H200]
    assert served.ledger.episode(first).intact


def test_an_opening_without_known_accelerators_has_no_accelerators_field(serve):
    served = serve()
    run = served.run()
    episode = served.ledger.episode(served.reset(run))
    assert episode.opening == EpisodeOpening(run=run, domain="shell")
    assert "accelerators" not in episode.opening.text


def test_a_caller_cannot_set_the_accelerators(served):
    body = {"run": served.run(), "accelerators": ["1 x H100"]}
    refused = served.http("POST", "/episodes", body)
    assert refused.status_code == 422
    assert "accelerators are recorded by the service" in refused.text


def test_a_repeated_reset_on_other_accelerators_returns_the_same_episode(served, here):
    body, name = {"run": served.run()}, {"idempotency_key": "a" * 32}
    first = served.http("POST", "/episodes", body, **name)
    here[:] = H200
    again = served.http("POST", "/episodes", body, **name)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    other = served.http("POST", "/episodes", {**body, "turn_limit": 3}, **name)
    assert other.status_code == 409


def test_a_fork_records_current_accelerators_and_a_replay_those_of_its_source(served, here):
    run = served.run()
    source = served.reset(run)
    assert served.step(source, "echo a", 1).status_code == 200
    here[:] = H200
    at = {"episode": source, "step": 1}
    assert opening(served, served.reset(run, fork=at)).accelerators == H200
    assert opening(served, served.reset(run, replay=at)).accelerators == H100
