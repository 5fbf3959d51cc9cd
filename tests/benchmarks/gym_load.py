"""64 episodes of a Gymnasium vector: `python -m benchmarks.gym_load URL --episodes 64 --seconds 4`.

The client is a part of this wire, so that its own work is in the figures; it prints one Round.
"""

import argparse
import gc
import time
from contextlib import closing

from agentworld.client.gym import SimulatorVectorEnv
from benchmarks.load import Round, Used, Window

_ACTIONS = ("ls", "cat rimo.txt", "echo kolu > tane.txt", "cat tane.txt", "rm rimo.txt", "pwd")


def load(url: str, run: str, episodes: int, warm_up: float, seconds: float) -> Round:
    """Steps all of them at once, again and again."""
    with closing(SimulatorVectorEnv(url, run, num_envs=episodes)) as env:
        env.reset()
        window, number = Window(time.perf_counter() + warm_up, seconds), 0
        more = True
        while more:
            asked, number = time.perf_counter(), number + 1
            env.step([_ACTIONS[number % len(_ACTIONS)]] * episodes)
            answered = time.perf_counter()
            more = all(window.note(asked, answered) for _ in range(episodes))
    return window.round(episodes, Used(0.0, 0.0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="of a run")
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--warm-up", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    url, _, run = given.url.partition("/runs/")
    gc.freeze()
    print(load(url, run, given.episodes, given.warm_up, given.seconds).model_dump_json())


if __name__ == "__main__":
    main()
