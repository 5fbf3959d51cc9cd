"""The live environments of domains. Only data collection and live evaluation use them.

`open_environment` is the only function that opens one, and `domains.guard` forbids it while an
agent trains in a simulator. Another package adds its environments by an entry point of the group
`agentworld.live_domains`.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from random import Random
from types import MappingProxyType
from typing import NamedTuple, Protocol

from pydantic import JsonValue

from agentworld.domains import guard
from agentworld.domains.base import Start
from agentworld.domains.guard import Guard
from agentworld.domains.programs import Program
from agentworld.domains.state_fields import Fields
from agentworld.errors import InputError
from agentworld.kinds import Kinds
from agentworld.records.task import Task


class Observation(NamedTuple):
    """What an environment showed for an action."""

    text: str
    done: bool = False
    """The environment has ended the episode."""


class LiveSettings(NamedTuple):
    """What an environment is opened with."""

    step_seconds: float = 5.0
    """A step without an answer fails after this time."""
    options: Mapping[str, JsonValue] = MappingProxyType({})
    """Options of the domain's environments, from the recipe's `collect.options`."""

    def check_no_options(self, domain: str) -> None:
        """For a domain that has no options; raises InputError if any is set."""
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
        """The number of actions so far, failed ones included."""

    async def reset(self, task: Task) -> Start:
        """Begins an episode; raises EnvironmentBroken if that fails."""

    async def step(self, action: str) -> Observation:
        """Takes an action; raises EnvironmentBroken if the episode ends without an observation."""

    async def state(self) -> str:
        """The true state in the form of `Start.text`; does not count as a step."""

    async def fields(self) -> Fields | None:
        """The true state by the names of its fields; null if it is unknown. Not a step."""

    async def check(self, task: Task) -> bool | None:
        """Whether the state shows that the task succeeded; null if the state cannot show it.

        The agent cannot change how the state is read.
        """


class Explorer(Protocol):
    """A policy that acts in an environment to collect data."""

    def act(self, observation: Observation | None) -> str | None:
        """The next action; null after the last one. `observation` is null before the first one."""


class LiveDomain(Protocol):
    """A domain with an environment."""

    @property
    def launchers(self) -> frozenset[str]:
        """Names of the programs that start its environments."""

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs that its environments need on this machine."""

    def check_available(self) -> None:
        """Raises EnvironmentUnavailable if this machine cannot open an environment."""

    def task(self, seed: int, *, held_out: bool, has_goal: bool = True) -> Task:
        """The task of a seed, always the same. Held-out tasks use words that training never uses.

        Without a goal the task is only a start to explore from: no action ends it.
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
        """A policy for an episode of this task and start; it pursues the task, or explores."""

    def open(self, settings: LiveSettings) -> AbstractAsyncContextManager[Environment]:
        """An environment that is closed at the end of the block.

        Raises InputError for an unknown option.
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
    """The environments of a domain; raises InputError if the domain has none."""
    return _KINDS.find(name)


def live_domain_names() -> list[str]:
    """The names of the domains that have environments, in alphabetical order."""
    return _KINDS.names


def check_available(names: Iterable[str]) -> None:
    """Raises EnvironmentUnavailable if this machine cannot open an environment of each domain."""
    for name in names:
        live_domain(name).check_available()


def live_domain_modules(names: Iterable[str]) -> list[str]:
    """The modules of the environments of these domains; a domain without environments has none."""
    return [_KINDS.module_of(name) for name in names if name in _KINDS.names]


def no_environment() -> AbstractContextManager[Guard]:
    """Forbids this process to open an environment of any domain while the block runs."""
    launchers = [live_domain(name).launchers for name in live_domain_names()]
    return guard.refuse_environments(frozenset[str]().union(*launchers))


@asynccontextmanager
async def open_environment(
    name: str, settings: LiveSettings = DEFAULT_SETTINGS
) -> AsyncIterator[Environment]:
    """Opens an environment; raises LiveEnvironmentRefused while a simulated training runs."""
    guard.check()
    async with live_domain(name).open(settings) as environment:
        yield environment
