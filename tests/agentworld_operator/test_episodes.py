import asyncio
import ssl

import pytest

from agentworld_operator.episodes import OpenEpisodes
from agentworld_operator.service import service_client
from make import records
from make.operator import Service

ONE, OTHER = records.digest("one"), records.digest("other")


@pytest.fixture
def service():
    told = Service()
    yield told
    told.close()


def asked(episodes):
    """The changed numbers."""
    changed = []
    asyncio.run(episodes.ask(changed.append))
    return sorted(changed)


@pytest.mark.waits
def test_the_episode_count_of_a_simulator_comes_from_the_service(service):
    service.tell(ONE, 7)
    episodes = OpenEpisodes(service.url, None)
    assert episodes.of(ONE) is None
    assert asked(episodes) == [ONE]
    assert (episodes.of(ONE), episodes.of(OTHER)) == (7, 0)


@pytest.mark.waits
def test_only_changed_counts_are_reported(service):
    episodes = OpenEpisodes(service.url, None)
    service.tell(ONE, 1)
    asked(episodes)
    service.tell(OTHER, 2)
    assert asked(episodes) == [OTHER]
    assert asked(episodes) == []


@pytest.mark.waits
def test_the_count_is_unknown_and_not_zero_without_an_answer_of_the_service(service):
    service.tell(ONE, 7)
    episodes = OpenEpisodes(service.url, None)
    asked(episodes)
    service.close()
    asked(episodes)
    assert episodes.of(ONE) is None


@pytest.mark.waits
def test_the_count_is_unknown_with_an_unreadable_credential(service, tmp_path):
    episodes = OpenEpisodes(service.url, tmp_path / "no-token")
    assert asked(episodes) == []
    assert episodes.of(ONE) is None


def test_only_the_first_client_loads_certificates(monkeypatch):
    service_client(None)
    loaded = []
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: loaded.append(1))
    service_client(None)
    assert loaded == []
