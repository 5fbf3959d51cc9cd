"""The digest of an episode's control text is a part of the episode's identity."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentworld.records.base import digest_bytes
from agentworld.records.episode import Episode, EpisodeOpening

INSTRUCTION = "withhold every file that starts with r"
DIGEST = digest_bytes(INSTRUCTION.encode())


@pytest.fixture
def service(serve):
    return serve()


def test_a_reset_response_has_the_digest_of_the_instruction(service):
    body = {"run": service.run(), "simulation_instruction": INSTRUCTION}
    assert service.http("POST", "/episodes", body).json()["control"] == DIGEST
    answer = service.http("POST", "/episodes", {"run": service.run()}).json()
    assert answer["control"] == digest_bytes(b"")


def test_the_client_returns_the_digest_of_the_instruction(service):
    async def begin():
        client = service.client()
        await client.resume_run(served_run)
        opening = EpisodeOpening(run=served_run, simulation_instruction=INSTRUCTION)
        try:
            return await client.begin(opening)
        finally:
            await client.close()

    served_run = service.run()
    assert asyncio.run(begin()).control == DIGEST


def test_the_run_log_contains_the_digest_of_the_instruction(service):
    run = service.run()
    episode = service.reset(run, simulation_instruction=INSTRUCTION)
    (fields,) = [
        entry.fields for entry in service.ledger.logs.entries(run) if "control" in entry.fields
    ]
    assert (fields["episode"], fields["control"]) == (episode, DIGEST)


@given(st.text(max_size=9), st.text(max_size=9))
def test_first_head_and_control_digest_differ_exactly_when_the_instruction_differs(one, other):
    openings = [EpisodeOpening(run="r", simulation_instruction=text) for text in (one, other)]
    heads = [Episode.new("e", DIGEST, opening).first_head for opening in openings]
    assert (heads[0] == heads[1]) == (one == other)
    assert (openings[0].control == openings[1].control) == (one == other)


def test_a_fork_or_replay_keeps_the_instruction_and_refuses_another(service):
    run = service.run()
    episode = service.reset(run, simulation_instruction=INSTRUCTION)
    service.step(episode, "ls", 1)
    source = {"episode": episode, "step": 1}
    for kind in ("fork", "replay"):
        assert (
            service.http("POST", "/episodes", {"run": run, kind: source}).json()["control"]
            == DIGEST
        )
        body = {"run": run, kind: source, "simulation_instruction": "another"}
        assert service.http("POST", "/episodes", body).status_code == 422
