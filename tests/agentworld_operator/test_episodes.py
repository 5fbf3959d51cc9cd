import asyncio
import ssl

import pytest

from agentworld_operator.episodes import OpenEpisodes
from agentworld_operator.service import service_client
from make import records
from make.operator import Service

DIGEST, OTHER_DIGEST = records.digest("one"), records.digest("other")


@pytest.fixture
def service():
    episode_service = Service()
    yield episode_service
    episode_service.close()


def changed_digests(episodes):
    """The digests whose counts changed."""
    digests = []
    asyncio.run(episodes.ask(digests.append))
    return sorted(digests)


@pytest.mark.waits
def test_the_episode_count_of_a_simulator_comes_from_the_service(service):
    service.tell(DIGEST, 7)
    episodes = OpenEpisodes(service.url, None)
    assert episodes.of(DIGEST) is None
    assert changed_digests(episodes) == [DIGEST]
    assert (episodes.of(DIGEST), episodes.of(OTHER_DIGEST)) == (7, 0)


@pytest.mark.waits
def test_only_changed_counts_are_reported(service):
    episodes = OpenEpisodes(service.url, None)
    service.tell(DIGEST, 1)
    changed_digests(episodes)
    service.tell(OTHER_DIGEST, 2)
    assert changed_digests(episodes) == [OTHER_DIGEST]
    assert changed_digests(episodes) == []


@pytest.mark.waits
def test_the_count_is_unknown_and_not_zero_without_an_answer_of_the_service(service):
    service.tell(DIGEST, 7)
    episodes = OpenEpisodes(service.url, None)
    changed_digests(episodes)
    service.close()
    changed_digests(episodes)
    assert episodes.of(DIGEST) is None


@pytest.mark.waits
def test_the_count_is_unknown_with_an_unreadable_credential(service, tmp_path):
    episodes = OpenEpisodes(service.url, tmp_path / "no-token")
    assert changed_digests(episodes) == []
    assert episodes.of(DIGEST) is None


def test_only_the_first_client_loads_certificates(monkeypatch):
    service_client(None)
    loads = []
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: loads.append(1))
    service_client(None)
    assert loads == []
