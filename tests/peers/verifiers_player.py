"""The environment `openenv` of verifiers with a player that says these lines:
`python -m peers.verifiers_player RUN_URL RESET LINES`. RESET is what it resets with, as JSON.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

from verifiers.v1.tasksets.openenv import OpenEnvConfig, OpenEnvEnvConfig
from verifiers.v1.utils.loaders import load_environment


class Player:
    """Replaces verifiers' own player, which uses a model; records its inputs."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = iter(lines)
        self.heard: list[object] = []
        self.rewards: dict[str, float] = {}
        self.trace = SimpleNamespace(record_reward=self.rewards.__setitem__)

    @asynccontextmanager
    async def interaction(self, _task: object) -> AsyncIterator["Player"]:
        yield self

    async def turn(self, payload: str) -> SimpleNamespace:
        self.heard.append(json.loads(payload))
        return SimpleNamespace(terminated=False, last_reply=next(self._lines))


def main(run_url: str, reset: str, lines: str) -> None:
    taskset = OpenEnvConfig(id="openenv", base_url=run_url, resets=[json.loads(reset)])
    environment = load_environment(OpenEnvEnvConfig(taskset=taskset))
    player = Player(json.loads(lines))
    for task in environment.taskset:
        asyncio.run(environment.run(task, SimpleNamespace(player=player)))
    print(json.dumps({"heard": player.heard, "rewards": player.rewards}))


if __name__ == "__main__":
    main(*sys.argv[1:])
