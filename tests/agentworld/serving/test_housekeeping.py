import asyncio
import logging

import pytest

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import StoreError
from agentworld.serving.housekeeping import repeating
from make.service import OPENING, listening, play, service
from waiting import wait_for


def test_repeated_work_runs_until_the_end_of_the_block():
    calls = []

    async def work():
        calls.append(1)

    async def repeat():
        async with repeating(work, 0.001):
            while len(calls) < 3:
                await asyncio.sleep(0.001)
        num_calls = len(calls)
        await asyncio.sleep(0.01)
        assert len(calls) == num_calls

    asyncio.run(repeat())


@pytest.mark.parametrize(
    ("error", "message"),
    [(StoreError("the disk is full"), "the disk is full"), (KeyError("a"), "internal error")],
)
def test_failing_work_is_logged_and_retried(caplog, error, message):
    calls = []

    async def work():
        calls.append(1)
        if len(calls) == 1:
            raise error

    async def repeat():
        async with repeating(work, 0.001):
            while len(calls) < 2:
                await asyncio.sleep(0.001)

    with caplog.at_level(logging.WARNING):
        asyncio.run(repeat())
    assert message in caplog.text


def play_at(url):
    async def play_once():
        client = SimulatorClient(url)
        run = (await client.open_run(OPENING)).id
        episode = await play(client, "echo a", run=run)
        await client.close()
        return run, episode

    return asyncio.run(play_once())


@pytest.mark.compute
def test_a_running_service_expires_idle_episodes_and_signs_logs(tmp_path):
    app = service(tmp_path, idle_seconds=0.2, seal_seconds=0.05)
    with listening(app.app) as url:
        run, episode = play_at(url)
        wait_for(lambda: app.ledger.episode(episode).closed == "expired")
        wait_for(lambda: len(app.ledger.logs.entries(run)) in app.ledger.logs.checkpoints(run))


def test_a_service_logs_a_failed_signing_at_shutdown_and_ends(tmp_path, caplog):
    app = service(tmp_path)
    with caplog.at_level(logging.WARNING), listening(app.app) as url:
        run, _ = play_at(url)
        (tmp_path / "mirror").write_text("no folder")
    assert "the last answers are logged and not signed" in caplog.text
    assert not app.ledger.logs.checkpoints(run)


def test_a_service_signs_the_whole_log_of_a_run_at_shutdown(tmp_path):
    app = service(tmp_path)
    with listening(app.app) as url:
        run, _ = play_at(url)
        assert not app.ledger.logs.checkpoints(run)
    assert len(app.ledger.logs.entries(run)) in app.ledger.logs.checkpoints(run)
