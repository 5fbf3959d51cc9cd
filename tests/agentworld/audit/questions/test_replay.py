"""A recorded episode is replayed from its record."""

import asyncio
import sqlite3

import pytest

import make.service
from agentworld.audit.questions.replay import replay_episode
from agentworld.errors import Conflict, SimulatorError
from make import records

ODD_COMMANDS = ("echo \x00", "pwd", "echo \ud800")


def test_a_replay_returns_the_recorded_observations_without_calling_the_engine(tmp_path):
    service = make.service.service(tmp_path)

    async def work():
        client = service.client()
        episode = await make.service.play(client, *ODD_COMMANDS)
        await client.close_run(records.digest("final"))
        num_requests = len(service.engine.requests)
        report = await replay_episode(episode, service.client(), "me")
        assert len(service.engine.requests) == num_requests
        return report

    report = asyncio.run(work())
    assert (report.num_steps, report.differences) == (3, ())
    replay = service.ledger.episode(report.replay)
    assert [step.observation for step in replay.steps] == ["\x00\n[0] ~", "[0] ~", "\ud800\n[0] ~"]
    run = service.ledger.run(report.run)
    assert (run.opening.purpose, run.opening.opened_by) == ("evaluation", "me")
    assert run.final_weights == make.service.OPENING.starting_weights


def test_a_replayed_episode_with_a_task_ends_with_the_recorded_reward(tmp_path):
    service = make.service.service(tmp_path)

    async def work():
        client = service.client()
        await client.open_run(make.service.OPENING)
        episode = await client.reset(records.task())
        await client.step(episode, "echo besa")
        return await replay_episode(episode, client, "me")

    report = asyncio.run(work())
    assert report.differences == ()
    assert service.ledger.episode(report.replay).steps[-1].reward == 1.0


class ChangedService:
    """A service that gives another observation for the second step."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    async def step(self, episode, action):
        answer = await self._client.step(episode, action)
        return answer._replace(observation="other") if answer.step == 2 else answer


def test_an_observation_that_differs_from_the_record_is_reported(tmp_path):
    service = make.service.service(tmp_path)

    async def work():
        client = service.client()
        episode = await make.service.play(client, *ODD_COMMANDS)
        return await replay_episode(episode, ChangedService(client), "me")

    assert asyncio.run(work()).differences == (
        "step 2: the observation differs from the recorded one",
    )


def test_replaying_an_erased_episode_fails_and_opens_no_run(tmp_path):
    service = make.service.service(tmp_path)
    episode = asyncio.run(make.service.play(service.client(), "ls"))
    asyncio.run(service.client().end(episode))
    service.ledger.erase_texts(episode)
    with pytest.raises(Conflict, match="step 1 .* was erased by retention"):
        asyncio.run(replay_episode(episode, service.client(), "me"))
    assert len(service.ledger.runs()) == 1


def test_replaying_a_changed_episode_fails(tmp_path):
    service = make.service.service(tmp_path)
    episode = asyncio.run(make.service.play(service.client(), "ls"))
    with sqlite3.connect(tmp_path / "ledger.db") as database:
        database.execute("UPDATE steps SET observation = x'41'")
    with pytest.raises(SimulatorError, match="do not follow from each other"):
        asyncio.run(replay_episode(episode, service.client(), "me"))
