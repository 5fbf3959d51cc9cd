"""Two commands in a simulated shell, by OpenEnv's client for tools."""

import asyncio
import sys

from openenv.core.env_server.mcp_types import CallToolAction
from openenv.core.mcp_client import MCPToolClient


async def main(run_url: str) -> None:
    async with MCPToolClient(base_url=run_url) as world:
        print([tool.name for tool in await world.list_tools()])
        await world.reset(turn_limit=8)
        print(await world.call_tool("bash", command="echo kolu > rimo.txt"))
        # As a step, it comes with a reward and tells whether the episode is over.
        action = CallToolAction(tool_name="bash", arguments={"command": "cat rimo.txt"})
        result = await world.step(action)
        print(result.observation.result, result.reward, result.done)
        print((await world.state()).step_count)


asyncio.run(main(sys.argv[1]))  # http://HOST:PORT/runs/RUN
