"""Holds episodes open: `python -m benchmarks.hold URL --episodes 1000 --turns 12`.

It prints a line when every episode has taken its turns, and closes them when its input ends.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable

import uvloop

from benchmarks.episode import close_all, open_all


async def hold(url: str, num_episodes: int, turns: int) -> None:
    """The episodes take their turns side by side and stay."""
    opened = await open_all(url, num_episodes)
    await asyncio.gather(*(episode.take_steps(at_most(turns)) for episode in opened))
    print("held", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await close_all(opened)


def at_most(turns: int) -> Callable[[float, float], bool]:
    """Told of each answered step, says whether there is another turn."""
    left = iter(range(turns - 1, -1, -1))
    return lambda _asked, _answered: next(left) > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--turns", type=int, required=True)
    given = parser.parse_args()
    uvloop.run(hold(given.url, given.episodes, given.turns))


if __name__ == "__main__":
    main()
