"""The environments of domains: for collecting data and for live evaluation, and for nothing else.

`open_environment` is the only way to one, and `domains.guard` closes it while an agent trains in a
simulator. A domain of another package is an entry point of the group `agentworld.live_domains`.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from random import Random
from types import MappingProxyType
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from agentworld.domains import guard
from agentworld.domains.base import Start, domain_names, domain_of
from agentworld.domains.guard import Guard
from agentworld.errors import InputError
from agentworld.kinds import Kinds
from agentworld.records.base import Record
from agentworld.records.task import Task


class Observation(NamedTuple):
    """What an environment showed for an action."""

    text: str
    done: bool = False
    """The environment has ended the episode."""


class LiveSettings(NamedTuple):
    """What an environment is opened with."""

    step_seconds: float = 5.0
    """After so long without an answer a step has failed."""
    options: Mapping[str, JsonValue] = MappingProxyType({})
    """What the domain lets choose of its environments."""

    def check_no_options(self, domain: str) -> None:
        """Raises InputError for options, in a domain that has none."""
        if self.options:
            names = ", ".join(self.options)
            raise InputError(
                f"the environments of {domain} have no options {names}; leave them out"
            )


DEFAULT_SETTINGS = LiveSettings()


class Environment(Protocol):
    """One environment, in which one episode runs after another."""

    @property
    def num_steps(self) -> int:
        """The actions that were tried."""

    async def reset(self, task: Task) -> Start:
        """Begins an episode; raises EnvironmentBroken where that fails."""

    async def step(self, action: str) -> Observation:
        """Raises EnvironmentBroken where the action ended the episode without an observation."""

    async def state(self) -> str:
        """The true state as a start says it; it is no step."""

    async def check(self, task: Task) -> bool | None:
        """Whether the state, out of the agent's reach, shows success; null where it cannot."""


class Explorer(Protocol):
    """A policy that collects data."""

    def act(self, observation: Observation | None) -> str | None:
        """The next action after an observation, null at the start; null where it has finished."""


class LiveDomain(Protocol):
    """A domain with an environment."""

    @property
    def launchers(self) -> frozenset[str]:
        """Names of the programs that its environments start with."""

    def check_available(self) -> None:
        """Raises EnvironmentUnavailable where no environment can be opened on this machine."""

    def task(self, seed: int, *, held_out: bool, has_goal: bool = True) -> Task:
        """The task of a seed: always the same. Held-out ones use what no training episode may.

        Without a goal it is a start to explore from, which no action closes.
        """

    def explorer(
        self,
        rng: Random,
        start: Start,
        task: Task,
        *,
        held_out: bool,
        pursues_task: bool,
        num_turns: int,
    ) -> Explorer:
        """A policy for an episode that began with a task: it pursues the task, or explores."""

    def open(self, settings: LiveSettings) -> AbstractAsyncContextManager[Environment]:
        """An environment, which ends with the block.

        Raises InputError for an option that the domain has not.
        """


_KINDS = Kinds[LiveDomain](
    group="agentworld.live_domains",
    noun="domain with an environment",
    attribute="DOMAIN",
    modules={
        "mcp": "agentworld.domains.mcp.live",
        "shell": "agentworld.domains.shell.live",
        "terminal": "agentworld.domains.terminal.live",
    },
)


def live_domain(name: str) -> LiveDomain:
    """The environments of a domain; raises InputError where it has none."""
    return _KINDS.find(name)


def live_domain_modules(names: Iterable[str]) -> list[str]:
    """The modules of those of these domains that have environments."""
    return [_KINDS.module_of(name) for name in names if name in _KINDS.names]


class DomainSummary(Record):
    """An installed domain at a glance."""

    name: str
    version: str = ""
    has_environments: bool = False
    tools: tuple[str, ...] = ()
    """What an agent may call in an episode that names no tools."""
    problem: str = ""
    """Why it cannot be loaded; then nothing else is known of it."""


def domain_summaries() -> list[DomainSummary]:
    """Of all domains; one that cannot be loaded hides no other."""
    return [_summary(name) for name in domain_names()]


def _summary(name: str) -> DomainSummary:
    try:
        domain = domain_of(name)
    except Exception as error:  # noqa: BLE001 - whatever somebody's package raises on import
        return DomainSummary(name=name, problem=f"cannot be loaded: {error!r:.200}")
    return DomainSummary(
        name=name,
        version=domain.version,
        has_environments=name in _KINDS.names,
        tools=tuple(tool.name for tool in domain.tools),
    )


def no_environment() -> AbstractContextManager[Guard]:
    """While the block runs, this process can open no environment of any domain."""
    launchers = [live_domain(name).launchers for name in _KINDS.names]
    return guard.refuse_environments(frozenset[str]().union(*launchers))


@asynccontextmanager
async def open_environment(
    name: str, settings: LiveSettings = DEFAULT_SETTINGS
) -> AsyncIterator[Environment]:
    """An environment of a domain; raises LiveEnvironmentRefused while a simulated training runs."""
    guard.check()
    async with live_domain(name).open(settings) as environment:
        yield environment
