"""The only way to open an environment, most with a domain written for tests."""

import asyncio
import os
import resource
from contextlib import ExitStack

import pytest

from agentworld.domains import live
from agentworld.domains.base import domain_of
from agentworld.domains.live import (
    LiveSettings,
    live_domain,
    live_domain_modules,
    open_environment,
)
from agentworld.errors import InputError
from make import records
from make.live_domains import ScriptedDomain, registered


def test_an_environment_is_closed_after_its_block(monkeypatch):
    domain = ScriptedDomain()
    registered(monkeypatch, "mine", domain)

    async def episode():
        async with open_environment("mine") as environment:
            await environment.reset(records.task(domain="mine"))
            observation = await environment.step("look")
            assert domain.environments[0].is_open
            return observation, environment.num_steps

    assert asyncio.run(episode()) == (("look", False), 1)
    assert not domain.environments[0].is_open


def test_an_error_in_the_block_closes_its_environment(monkeypatch):
    domain = ScriptedDomain(lambda _: OSError("lost"))
    registered(monkeypatch, "mine", domain)

    async def episode():
        async with open_environment("mine") as environment:
            await environment.step("look")

    with pytest.raises(OSError, match="lost"):
        asyncio.run(episode())
    assert not domain.environments[0].is_open


def test_a_domain_without_environments_is_refused_and_live_domains_are_listed():
    async def open_and_close():
        async with open_environment("text"):
            pass

    with pytest.raises(InputError, match="no domain with an environment 'text' here; there is"):
        asyncio.run(open_and_close())
    assert "shell" in live._KINDS.names


def test_only_domains_with_environments_have_live_modules():
    assert live_domain_modules(["text", "shell"]) == ["agentworld.domains.shell.live"]


def test_unknown_options_of_a_domain_are_refused_by_name():
    async def open_and_close():
        async with open_environment("shell", LiveSettings(options={"servers": {}})):
            pass

    with pytest.raises(InputError, match="environments of shell have no options servers"):
        asyncio.run(open_and_close())


@pytest.mark.parametrize("name", live._KINDS.names)
def test_the_task_of_a_seed_is_deterministic_and_of_its_domain(name):
    domain = live_domain(name)
    task = domain.task(7, held_out=True)
    assert task == domain.task(7, held_out=True)
    assert (task.domain, task.seed) == (name, 7)
    assert domain_of(name).outcome(task, "no action of any task", "") is None


def test_the_default_step_time_is_five_seconds():
    assert LiveSettings().step_seconds == live.DEFAULT_SETTINGS.step_seconds == 5.0


@pytest.fixture
def many_open_files():
    """The next file that this process opens gets a descriptor of at least 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with ExitStack() as stack:
        while stack.enter_context(open(os.devnull)).fileno() < 1024:
            pass
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.waits
@pytest.mark.usefixtures("many_open_files")
@pytest.mark.parametrize(
    ("domain", "action"),
    [("shell", "echo kolu"), ("terminal", '[{"keystrokes":"echo kolu\\n","duration":60}]')],
)
def test_an_environment_works_in_a_process_with_more_than_a_thousand_open_files(domain, action):
    async def episode():
        async with open_environment(domain, LiveSettings(step_seconds=60)) as environment:
            await environment.reset(records.task(initial_state=""))
            return (await environment.step(action)).text

    assert "kolu\n" in asyncio.run(episode())
