"""Steps per second of our service and of OpenEnv servers that do nothing, in turn."""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.disk import fsync_p50_ms
from benchmarks.door import Door
from benchmarks.doors import start_ours, start_peer
from benchmarks.figures import Spread, ratios
from benchmarks.load import Round
from benchmarks.rounds import Summary, summary, take_turns

EPISODES = (1, 64, 1_000)
ROUNDS = 6
SECONDS = 4.0
OURS, PEER, ASYNC = "ours", "openenv", "openenv_async"


class StepRates(NamedTuple):
    """The rounds of each server, by its name, at each number of episodes."""

    rounds: Mapping[int, Mapping[str, list[Round]]]
    fsync_p50_ms: float

    def ratio(self, episodes: int, peer: str = PEER) -> Spread:
        """Our steps per second over a peer's."""
        ours, theirs = (
            [taken.steps_per_second for taken in self.rounds[episodes][name]]
            for name in (OURS, peer)
        )
        return ratios(ours, theirs)

    @property
    def summaries(self) -> dict[str, dict[int, Summary]]:
        """By server, then by the number of episodes."""
        return {
            name: {episodes: summary(taken[name]) for episodes, taken in self.rounds.items()}
            for name in (PEER, ASYNC, OURS)
        }

    @property
    def added_p50_ms(self) -> float:
        """What a step takes longer than the peer's, with one episode."""
        return self.summaries[OURS][1].p50_ms - self.summaries[PEER][1].p50_ms

    def as_json(self) -> dict[str, object]:
        """The keys of `.bench/simulator.json` that are about steps."""
        servers = {
            name: {str(episodes): said._asdict() for episodes, said in by_episodes.items()}
            for name, by_episodes in self.summaries.items()
        }
        return servers | {
            "ratio": {str(n): self.ratio(n).median for n in self.rounds},
            "ratio_interval": {str(n): self.ratio(n)[1:] for n in self.rounds},
            "ratio_async": {str(n): self.ratio(n, ASYNC).median for n in self.rounds},
            "added_p50_ms": self.added_p50_ms,
            "fsync_p50_ms": self.fsync_p50_ms,
            "fsync_share": self.fsync_p50_ms / self.added_p50_ms,
        }


def measure_rates(folder: Path, rounds: int = ROUNDS, seconds: float = SECONDS) -> StepRates:
    """Starts all servers once; they are idle while another one is measured."""
    with ExitStack() as started:
        doors: dict[str, Door] = {
            PEER: started.enter_context(start_peer(folder)),
            ASYNC: started.enter_context(start_peer(folder, "async")),
            OURS: started.enter_context(start_ours(folder)),
        }
        taken = {n: take_turns(doors, n, rounds=rounds, seconds=seconds) for n in EPISODES}
        return StepRates(taken, fsync_p50_ms(folder))
