"""Episodes are recorded with the accelerators of their engine."""

import pytest

from agentworld.records.episode import EpisodeOpening

H100, H200 = ("1 x H100",), ("1 x H200",)


@pytest.fixture
def accelerators():
    """The engine's accelerators, which a test may change."""
    return list(H100)


@pytest.fixture
def service(serve, accelerators):
    return serve(accelerators=lambda: tuple(accelerators))


def opening(service, episode):
    return service.ledger.episode(episode).opening


def test_an_opening_records_the_accelerators_of_the_engine(service, accelerators):
    first = service.reset()
    accelerators[:] = H200
    second = service.reset()
    assert [opening(service, episode).accelerators for episode in (first, second)] == [H100, H200]
    assert service.ledger.episode(first).intact


def test_an_opening_without_known_accelerators_has_no_accelerators_field(serve):
    service = serve()
    run = service.run()
    episode = service.ledger.episode(service.reset(run))
    assert episode.opening == EpisodeOpening(run=run, domain="shell")
    assert "accelerators" not in episode.opening.text


def test_a_caller_cannot_set_the_accelerators(service):
    body = {"run": service.run(), "accelerators": ["1 x H100"]}
    answer = service.http("POST", "/episodes", body)
    assert answer.status_code == 422
    assert "accelerators are recorded by the service" in answer.text


def test_a_repeated_reset_on_other_accelerators_returns_the_same_episode(service, accelerators):
    body, key = {"run": service.run()}, {"idempotency_key": "a" * 32}
    first = service.http("POST", "/episodes", body, **key)
    accelerators[:] = H200
    second = service.http("POST", "/episodes", body, **key)
    assert (second.status_code, second.json()) == (first.status_code, first.json())
    third = service.http("POST", "/episodes", {**body, "turn_limit": 3}, **key)
    assert third.status_code == 409


def test_a_fork_records_current_accelerators_and_a_replay_those_of_its_source(
    service, accelerators
):
    run = service.run()
    source = service.reset(run)
    assert service.step(source, "echo a", 1).status_code == 200
    accelerators[:] = H200
    reference = {"episode": source, "step": 1}
    assert opening(service, service.reset(run, fork=reference)).accelerators == H200
    assert opening(service, service.reset(run, replay=reference)).accelerators == H100
