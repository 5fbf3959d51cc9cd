"""Live MCP servers; each server of each episode runs in its own sandbox."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from random import Random

from agentworld.domains.base import Start
from agentworld.domains.live import Environment, Explorer, LiveDomain, LiveSettings
from agentworld.domains.live_defaults import BaseLiveDomain
from agentworld.domains.mcp.environment import McpEnvironment
from agentworld.domains.mcp.explorer import SchemaExplorer
from agentworld.domains.mcp.options import McpOptions, read_options
from agentworld.domains.mcp.process import ANY_LIMITS, SandboxedServer
from agentworld.domains.mcp.shop.explorers import new_explorer
from agentworld.domains.mcp.shop.server import STATE_URI
from agentworld.domains.mcp.shop.tasks import NAME, solved_task
from agentworld.domains.mcp.shop.tools import shop_command, shop_tools
from agentworld.domains.mcp.transport import ServerProcess
from agentworld.domains.programs import PYTHON
from agentworld.domains.sandbox import SANDBOX_PROGRAMS, SandboxLimits
from agentworld.domains.tasks import SolvedTask
from agentworld.errors import InputError
from agentworld.records.task import Task

_SHOP = "shop"


class LiveMcp(BaseLiveDomain[SolvedTask]):
    """See `LiveDomain`."""

    programs = (*SANDBOX_PROGRAMS, PYTHON)

    def check_available(self) -> None:
        """Raises EnvironmentUnavailable if this machine cannot run a sandbox with the shop."""
        super().check_available()
        shop_command("")

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
        """The shop's explorer for the shop; for other servers, one that reads their schemas."""
        if start.tools:
            words = solved_task(task.seed, held_out=held_out, has_goal=pursues_task).words
            return SchemaExplorer(rng, start.tools, words.contents, num_turns)
        return super().explorer(
            rng, start, task, held_out=held_out, pursues_task=pursues_task, num_turns=num_turns
        )

    def open(self, settings: LiveSettings) -> AbstractAsyncContextManager[Environment]:
        """An environment whose servers start with the first episode."""
        options = read_options(settings.options)
        return aclosing(_others(options, settings) if options.servers else _shop(settings))


def _shop(settings: LiveSettings) -> McpEnvironment:
    return McpEnvironment(
        lambda task: {_SHOP: shop_command(task.initial_state)},
        lambda _, command: SandboxedServer(command, SandboxLimits()),
        domain=NAME,
        own_tools=shop_tools(),
        state_uri=STATE_URI,
        seconds=settings.step_seconds,
    )


def _others(options: McpOptions, settings: LiveSettings) -> McpEnvironment:
    """The environment of a recipe's servers. They have no tasks, because their state is unknown."""

    def commands_of(task: Task) -> Mapping[str, Sequence[str]]:
        if task.instruction:
            raise InputError(
                f"the task {task.id} is of the shop, and these servers have no tasks; set"
                " collect.task_share to 0"
            )
        return {name: server.words for name, server in options.servers.items()}

    def start(name: str, command: Sequence[str]) -> ServerProcess:
        return SandboxedServer(command, ANY_LIMITS, options.servers[name].folders)

    return McpEnvironment(
        commands_of, start, domain=NAME, own_tools=shop_tools(), seconds=settings.step_seconds
    )


DOMAIN: LiveDomain = LiveMcp(solved_task, new_explorer)
