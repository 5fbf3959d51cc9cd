"""The core without a wire: `python -m benchmarks.core_load FOLDER --episodes 64 --seconds 4`.

N episodes step at once in the service's own process, on the real ledger; it prints one Round.
"""

import argparse
import asyncio
import gc
import time
from pathlib import Path

import uvloop

from agentworld.records.episode import EpisodeOpening
from agentworld.simulate.runs import Runs
from agentworld.simulate.service import SimulatorService
from agentworld.simulate.session import Request
from benchmarks.doors import OBSERVATION, OPENING
from benchmarks.instant_simulator import Parts, parts_in
from benchmarks.load import Round, Used, Window


async def load(parts: Parts, episodes: int, warm_up: float, seconds: float) -> Round:
    """Steps so many episodes for a while."""
    simulators, keeper, sealer = parts
    (service,) = simulators.connected.values()
    run = (await Runs(keeper, simulators, sealer).open(OPENING)).id
    window = Window(time.perf_counter() + warm_up, seconds)
    await asyncio.gather(*(_play(service, run, window) for _ in range(episodes)))
    await keeper.close()
    await asyncio.to_thread(sealer.seal_all)
    return window.round(episodes, Used(0.0, 0.0))


async def _play(service: SimulatorService, run: str, window: Window) -> None:
    """One episode after the other, of 32 turns, as over a wire."""
    while True:
        episode = (await service.reset(EpisodeOpening(run=run))).episode
        done, number = False, 0
        while not done:
            number += 1
            asked = time.perf_counter()
            done = (await service.step(episode, Request(number, f"cat {number}.txt"))).step.done
            if not window.note(asked, time.perf_counter()):
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--warm-up", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    Path(given.folder).mkdir(parents=True, exist_ok=True)
    parts = parts_in(given.folder, OBSERVATION)
    gc.freeze()
    measured = uvloop.run(load(parts, given.episodes, given.warm_up, given.seconds))
    print(measured.model_dump_json())


if __name__ == "__main__":
    main()
