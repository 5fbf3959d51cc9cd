"""Checks the reset of a server on a fresh server, before an episode relies on it.

A server can keep state that its declared state does not show. So made-up calls of all tools must
have the same results after the reset as on the fresh server. If their results show a change, the
declared state must show it too: it is all that is compared before each episode.
"""

import asyncio
import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from agentworld.domains.base import Call
from agentworld.domains.mcp.comparison import is_same
from agentworld.domains.mcp.connection import ServerConnection
from agentworld.domains.mcp.explorer import SchemaExplorer
from agentworld.domains.mcp.observation import is_failure
from agentworld.domains.mcp.reset import StateAccess, read_snapshot, reset_in_place
from agentworld.domains.turn_kinds import kind_of_name
from agentworld.domains.words import training_words
from agentworld.errors import EnvironmentBroken
from agentworld.records.tool import Tool, Tools

_NUM_WORDS = 40
_MOST_FAILURES = 5  # a schema may allow what a server refuses
_SECONDS = 60.0
_REMOVAL = re.compile(r"clear|delete|destroy|drop|erase|purge|remove|reset|truncate|wipe", re.I)


class _Result(NamedTuple):
    """A call, and what it showed."""

    call: Call
    observation: str


async def check_reset(connection: ServerConnection, access: StateAccess) -> str:
    """Returns the snapshot of a fresh server.

    Raises EnvironmentBroken if the server differs from a fresh one after the reset, or if its
    declared state cannot show that.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            return await _check_reset(connection, access)
    except TimeoutError as error:
        raise EnvironmentBroken(f"its reset was not checked in {_SECONDS:g} s") from error


async def _check_reset(connection: ServerConnection, access: StateAccess) -> str:
    snapshot = await read_snapshot(connection, access)
    if not is_same(await read_snapshot(connection, access), snapshot):
        raise EnvironmentBroken("it has another state after its state was read")
    results = await _explore(connection)
    is_unchanged = is_same(await read_snapshot(connection, access), snapshot)
    if is_unchanged and await _difference(connection, results):
        raise EnvironmentBroken("calls change its state, and its declared state does not show it")
    await _reset(connection, access, snapshot)
    if difference := await _difference(connection, results):
        raise EnvironmentBroken(f"after the reset, {difference}")
    await _reset(connection, access, snapshot)
    return snapshot


async def _reset(connection: ServerConnection, access: StateAccess, snapshot: str) -> None:
    if not is_same(await reset_in_place(connection, access), snapshot):
        raise EnvironmentBroken("its state after the reset is not that of a fresh server")


async def _difference(connection: ServerConnection, results: Sequence[_Result]) -> str:
    """The first difference if the calls are made once more; empty if there is none."""
    for call, expected in results:
        observation = await connection.call(*call)
        if not is_same(observation, expected):
            return f"{call.name} shows {observation!r:.80} and not {expected!r:.80}"
    return ""


async def _explore(connection: ServerConnection) -> list[_Result]:
    """Calls of all tools with made-up arguments, always the same for the same results."""
    rng = random.Random("reset")
    explorer = SchemaExplorer(rng, connection.tools, training_words()[:_NUM_WORDS], num_turns=0)
    results: list[_Result] = []
    for tool in _script(connection.tools, rng):
        for _ in range(_MOST_FAILURES):
            call = Call(tool.name, explorer.arguments(tool))
            observation = await connection.call(*call)
            explorer.see(observation)
            results.append(_Result(call, observation))
            if not is_failure(observation):
                break
    if connection.tools and all(is_failure(result.observation) for result in results):
        raise EnvironmentBroken(
            "all made-up calls of its tools failed, so its reset was not checked"
        )
    return results


def _script(tools: Tools, rng: random.Random) -> list[Tool]:
    """Each tool three times: what two calls turn on and off would look the same.

    The first calls read, so that they show what a reset left; the last calls do not remove what
    others added.
    """
    order = sorted(rng.sample(tools, len(tools)), key=_rank)
    return [*order, *order[::-1], *order[::-1]]


def _rank(tool: Tool) -> int:
    if _REMOVAL.search(tool.name):
        return 2
    return 0 if tool.effect == "read" or kind_of_name(tool.name) == "read" else 1
