"""Live MCP servers; each server that a command line starts runs in its own sandbox."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, ExitStack, aclosing, asynccontextmanager
from functools import partial
from random import Random

from agentworld.domains.base import Start
from agentworld.domains.live import Environment, Explorer, LiveDomain, LiveSettings
from agentworld.domains.live_defaults import BaseLiveDomain
from agentworld.domains.mcp.address_lock import hold_address
from agentworld.domains.mcp.connection import ServerConnection, connect_address, connect_process
from agentworld.domains.mcp.environment import McpEnvironment, Server
from agentworld.domains.mcp.explorer import SchemaExplorer
from agentworld.domains.mcp.options import McpOptions, ServerOptions, header_values, read_options
from agentworld.domains.mcp.process import ANY_LIMITS, SandboxedServer
from agentworld.domains.mcp.reset import StateAccess, access_by_calls
from agentworld.domains.mcp.shop.explorers import new_explorer
from agentworld.domains.mcp.shop.server import STATE_METHOD, STATE_URI
from agentworld.domains.mcp.shop.tasks import NAME, solved_task
from agentworld.domains.mcp.shop.tools import shop_command, shop_tools
from agentworld.domains.mcp.supply import AddressSupply, ProcessSupply
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
        shop_command()

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
        return _open_others(options, settings) if options.servers else aclosing(_shop(settings))


def _shop(settings: LiveSettings) -> McpEnvironment:
    connect = partial(
        connect_process,
        _SHOP,
        lambda: SandboxedServer(shop_command(), SandboxLimits()),
        settings.step_seconds,
    )
    access = StateAccess(lambda connection: connection.read_text(STATE_URI), _write_shop)
    server = Server(
        ProcessSupply(_SHOP, connect, access),
        access,
        lambda connection, task: _write_shop(connection, task.initial_state),
    )
    return McpEnvironment({_SHOP: server}, domain=NAME, own_tools=shop_tools())


async def _write_shop(connection: ServerConnection, state: str = "") -> None:
    await connection.send(STATE_METHOD, {"text": state})


@asynccontextmanager
async def _open_others(options: McpOptions, settings: LiveSettings) -> AsyncIterator[Environment]:
    """The environment of a recipe's servers."""
    servers = {
        name: _server(name, server, settings.step_seconds)
        for name, server in options.servers.items()
    }
    environment = McpEnvironment(
        servers, domain=NAME, own_tools=shop_tools(), check_task=_refuse_task
    )
    with ExitStack() as locks:
        for name, server in options.servers.items():
            if server.url and server.reset:  # without calls, an episode changes its session alone
                locks.enter_context(hold_address(name, server.url))
        async with aclosing(environment):
            yield environment


def _server(name: str, options: ServerOptions, seconds: float) -> Server:
    state = [call.call for call in options.state]
    reset = None if options.reset is None else [call.call for call in options.reset]
    access = access_by_calls(state, reset)
    state_access = access if state else None
    if options.url:
        address = partial(connect_address, name, options.url, header_values(options), seconds)
        return Server(AddressSupply(name, address, access), state_access)
    connect = partial(
        connect_process,
        name,
        lambda: SandboxedServer(options.words, ANY_LIMITS, options.folders),
        seconds,
    )
    return Server(ProcessSupply(name, connect, access), state_access)


def _refuse_task(task: Task) -> None:
    """A recipe's servers have no tasks."""
    if task.instruction:
        raise InputError(
            f"the task {task.id} is of the shop, and these servers have no tasks; set"
            " collect.task_share to 0"
        )


DOMAIN: LiveDomain = LiveMcp(solved_task, new_explorer)
