"""Clients that play episodes, one class or record for each protocol; `load` sets the duration."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import aiohttp

from agentworld.client.gym import SimulatorVectorEnv
from agentworld.errors import SimulatorError
from agentworld.http.schemas import Request
from agentworld.records.episode import EpisodeOpening, new_name
from agentworld.serving.runs import Runs
from agentworld.serving.service import SimulatorService
from benchmarks.instant_simulator import parts_in
from benchmarks.servers import OBSERVATION, OPENING, Target

_AT_ONCE = 50
_CLOSE_SECONDS = 60.0
# Of an episode with every server: ours ends it then, and a peer's is reset then.
_TURNS = EpisodeOpening(run="").turn_limit

Fields = dict[str, object]


class Player(Protocol):
    """Plays one episode after another; raises SimulatorError for an invalid response."""

    async def begin(self) -> None:
        """Begins an episode."""
        ...

    async def step(self, action: str) -> bool:
        """Takes a step; returns whether the episode is over."""
        ...


class Turn(NamedTuple):
    """The data of an HTTP request."""

    run: str
    simulator: str
    episode: str
    number: int
    messages: list[dict[str, str]]
    """The conversation so far; the last one is the action."""

    @property
    def action(self) -> str:
        return self.messages[-1]["content"]


class HttpProtocol(NamedTuple):
    """The requests and responses of a protocol."""

    path: str
    """A template with the run and the episode."""
    body: Callable[[Turn], Fields]
    read: Callable[[Mapping], tuple[str, bool]]
    """Returns the observation and whether the episode is over; raises KeyError for an invalid
    response.
    """
    headers: Mapping[str, str] = {}


HTTP_PROTOCOLS = {
    "http": HttpProtocol(
        "/steps",
        lambda turn: {"episode": turn.episode, "action": turn.action, "step": turn.number},
        lambda answer: (answer["observation"], answer["done"]),
    ),
    "openenv_http": HttpProtocol(
        "/runs/{run}/step",
        lambda turn: {
            "action": {"action": turn.action},
            "episode_id": turn.episode,
            "step": turn.number,
        },
        lambda answer: (answer["observation"]["text"], answer["done"]),
    ),
    "openai": HttpProtocol(
        "/runs/{run}/v1/chat/completions",
        lambda turn: {
            "model": turn.simulator,
            "messages": turn.messages,
            "metadata": {"episode": turn.episode},
        },
        lambda answer: (answer["choices"][0]["message"]["content"], answer["agentworld"]["done"]),
    ),
    "mcp": HttpProtocol(
        "/episodes/{episode}/mcp",
        lambda turn: {
            "jsonrpc": "2.0",
            "id": turn.number,
            "method": "tools/call",
            "params": {"name": "bash", "arguments": {"command": turn.action}},
        },
        lambda answer: (
            answer["result"]["content"][0]["text"],
            answer["result"]["_meta"]["agentworld"]["done"],
        ),
        {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": "2025-06-18",
        },
    ),
}
"""By the names of `.bench/protocols.json`."""


class HttpPlayer:
    """Sends requests over one persistent connection."""

    def __init__(self, url: str, protocol: HttpProtocol, session: aiohttp.ClientSession) -> None:
        self._server, self._run = _run_of(url)
        self._protocol, self._session = protocol, session

    async def begin(self) -> None:
        self._turn = await self._post(
            "/episodes",
            {"run": self._run},
            lambda answer: Turn(self._run, answer["simulator"], answer["episode"], 0, []),
        )

    async def step(self, action: str) -> bool:
        messages = [*self._turn.messages, {"role": "user", "content": action}]
        turn = self._turn._replace(number=self._turn.number + 1, messages=messages)
        path = self._protocol.path.format(run=turn.run, episode=turn.episode)
        text, is_done = await self._post(path, self._protocol.body(turn), self._protocol.read)
        conversation = [*messages, {"role": "assistant", "content": text}]
        self._turn = turn._replace(messages=conversation)
        return is_done and text != ""

    async def _post(self, path: str, body: Fields, read: Callable):
        headers = self._protocol.headers
        try:
            async with self._session.post(
                self._server + path, json=body, headers=headers
            ) as answer:
                content = await answer.read()
        except aiohttp.ClientError as error:
            raise SimulatorError(f"the server closed the connection: {error}") from error
        return _read(content, read)


class OpenEnvPlayer:
    """Each WebSocket has an episode, which is reset at its end."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url, self._session = url, session
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._num_steps = 0

    async def begin(self) -> None:
        if self._socket is None:
            try:
                self._socket = await self._session.ws_connect(self._url, max_msg_size=0)
            except aiohttp.ClientError as error:
                raise SimulatorError(f"the server refused the connection: {error}") from error
        await self._ask("reset", {})
        self._num_steps = 0

    async def step(self, action: str) -> bool:
        self._num_steps += 1
        return await self._ask("step", {"action": action}) or self._num_steps == _TURNS

    async def close(self) -> None:
        if self._socket and not self._socket.closed:
            await self._socket.send_str('{"type":"close"}')
            await self._socket.receive()

    async def _ask(self, kind: str, data: Fields) -> bool:
        try:
            await self._socket.send_str(json.dumps({"type": kind, "data": data}))
            message = await self._socket.receive()
        except ConnectionError as error:
            raise SimulatorError(f"the server closed the connection: {error}") from error
        if message.type is not aiohttp.WSMsgType.TEXT:
            raise SimulatorError("the server closed the connection")
        return _read(message.data.encode(), lambda answer: answer["data"]["done"])


class CorePlayer:
    """The service in this process, without a protocol."""

    def __init__(self, service: SimulatorService, run: str) -> None:
        self._service, self._run = service, run

    async def begin(self) -> None:
        self._episode = (await self._service.reset(EpisodeOpening(run=self._run))).episode
        self._number = 0

    async def step(self, action: str) -> bool:
        self._number += 1
        answer = await self._service.step(self._episode, Request(self._number, action))
        return answer.step.done


class GymnasiumPlayer:
    """All episodes of a vector environment, which resets ended ones itself."""

    def __init__(self, env: SimulatorVectorEnv) -> None:
        self._env = env

    async def begin(self) -> None:
        await asyncio.to_thread(self._env.reset)

    async def step(self, action: str) -> bool:
        await asyncio.to_thread(self._env.step, [action] * self._env.num_envs)
        return False


@asynccontextmanager
async def playing(target: Target, num_episodes: int) -> AsyncIterator[list[Player]]:
    """The players of `num_episodes` open episodes; a Gymnasium vector is one player."""
    async with AsyncExitStack() as stack:
        players = await _players(target, num_episodes, stack)
        for first in range(0, num_episodes, _AT_ONCE):
            await asyncio.gather(*(player.begin() for player in players[first : first + _AT_ONCE]))
        yield players
        # The next measurement begins after the server has closed all connections.
        async with asyncio.timeout(_CLOSE_SECONDS):
            await asyncio.gather(
                *(player.close() for player in players if isinstance(player, OpenEnvPlayer))
            )


async def _players(target: Target, num: int, stack: AsyncExitStack) -> list[Player]:
    if target.protocol == "core":
        return await _core(Path(target.url) / new_name(), num, stack)
    if target.protocol == "gymnasium":
        env = SimulatorVectorEnv(*_run_of(target.url), num_envs=num)
        return [GymnasiumPlayer(stack.enter_context(closing(env)))]
    sessions = [await stack.enter_async_context(_session()) for _ in range(num)]
    if target.protocol != "openenv":
        protocol = HTTP_PROTOCOLS[target.protocol]
        return [HttpPlayer(target.url, protocol, session) for session in sessions]
    return [OpenEnvPlayer(target.url, session) for session in sessions]


def _run_of(url: str) -> tuple[str, str]:
    """The server of a run's WebSocket, and the run."""
    address = urlsplit(url)
    return f"http://{address.netloc}", address.path.split("/")[2]


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1))


async def _core(folder: Path, num_players: int, stack: AsyncExitStack) -> list[CorePlayer]:
    """The service with its own ledger."""
    folder.mkdir(parents=True)
    simulators, episode_store, log_signer = parts_in(str(folder), OBSERVATION)
    stack.push_async_callback(asyncio.to_thread, log_signer.seal_all)
    stack.push_async_callback(episode_store.close)
    (service,) = simulators.connected.values()
    run = (await Runs(episode_store, simulators, log_signer).open(OPENING)).id
    return [CorePlayer(service, run) for _ in range(num_players)]


def _read(content: bytes, read: Callable):
    try:
        return read(json.loads(content))
    except (ValueError, KeyError, TypeError) as error:
        excerpt = content[:200].decode(errors="replace")
        raise SimulatorError(f"the server answered {excerpt} where a step was expected") from error
