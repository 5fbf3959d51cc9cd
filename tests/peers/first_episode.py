"""Two commands in a simulated shell, over OpenEnv."""

import sys

from openenv.core import GenericEnvClient

run_url = sys.argv[1]  # http://HOST:PORT/runs/RUN

with GenericEnvClient(base_url=run_url).sync() as world:
    world.reset(turn_limit=8)
    for command in ("echo kolu > rimo.txt", "cat rimo.txt"):
        result = world.step({"action": command})
        print(result.observation["text"], result.reward, result.done)
    print(world.state()["step_count"])
