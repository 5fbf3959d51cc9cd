"""Steps per second of several servers, or of one over several protocols, alternately."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.disk import fsync_p50_ms
from benchmarks.figures import Spread, ratios, spread
from benchmarks.load import Round, take_turns
from benchmarks.players import HTTP_PROTOCOLS
from benchmarks.servers import Target, start_ours, start_peer

EPISODES = (1, 64, 1_000)
EPISODES_BY_PROTOCOL = 64
ROUNDS = 6
SECONDS = 4.0
OURS, PEER, ASYNC = "ours", "openenv", "openenv_async"
CORE = "core"

Rounds = Mapping[str, Sequence[Round]]
"""By the name of a server or a protocol."""


class Summary(NamedTuple):
    """Medians over the rounds of one server at one number of episodes."""

    steps_per_second: float
    steps_per_second_interval: tuple[float, float]
    p50_ms: float
    p99_ms: float
    server_us: float
    client_share: float
    """The maximum."""


def summary(rounds: Sequence[Round]) -> Summary:
    """The medians; the interval is that of `figures.Spread`."""
    rate = spread([item.steps_per_second for item in rounds])
    return Summary(
        rate.median,
        (rate.low, rate.high),
        median(item.p50_ms for item in rounds),
        median(item.p99_ms for item in rounds),
        median(item.server_us for item in rounds),
        max(item.client_share for item in rounds),
    )


def ratio(rounds: Rounds, name: str, base: str) -> Spread:
    """Of steps per second, round by round."""
    return ratios(*([item.steps_per_second for item in rounds[server]] for server in (name, base)))


class StepRates(NamedTuple):
    """The rounds of each server at each number of episodes."""

    rounds: Mapping[int, Rounds]
    fsync_p50_ms: float

    def ratio(self, episodes: int, peer: str = PEER) -> Spread:
        """Our steps per second over a peer's."""
        return ratio(self.rounds[episodes], OURS, peer)

    @property
    def added_p50_ms(self) -> float:
        """The difference of a step's time to the peer's, with one episode."""
        return summary(self.rounds[1][OURS]).p50_ms - summary(self.rounds[1][PEER]).p50_ms

    def as_json(self) -> dict[str, object]:
        """The keys of `.bench/simulator.json` about steps."""
        servers = {
            name: {
                str(n): summary(by_server[name])._asdict() for n, by_server in self.rounds.items()
            }
            for name in (PEER, ASYNC, OURS)
        }
        return servers | {
            "ratio": {str(n): self.ratio(n).median for n in self.rounds},
            "ratio_interval": {str(n): self.ratio(n)[1:] for n in self.rounds},
            "ratio_async": {str(n): self.ratio(n, ASYNC).median for n in self.rounds},
            "added_p50_ms": self.added_p50_ms,
            "fsync_p50_ms": self.fsync_p50_ms,
            "fsync_share": self.fsync_p50_ms / self.added_p50_ms,
        }


def measure_servers(folder: Path, rounds: int = ROUNDS, seconds: float = SECONDS) -> StepRates:
    """Starts all servers once; they are idle while another one is measured."""
    with ExitStack() as stack:
        targets = {
            PEER: stack.enter_context(start_peer(folder)),
            ASYNC: stack.enter_context(start_peer(folder, "async")),
            OURS: stack.enter_context(start_ours(folder)),
        }
        rounds_by_size = {
            n: take_turns(targets, n, rounds=rounds, seconds=seconds) for n in EPISODES
        }
        return StepRates(rounds_by_size, fsync_p50_ms(folder))


def measure_protocols(folder: Path, rounds: int = ROUNDS, seconds: float = SECONDS) -> Rounds:
    """All protocols of one service, which is idle while the core is measured."""
    with start_ours(folder) as target:
        names = ("openenv", *HTTP_PROTOCOLS, "gymnasium")
        targets = {
            CORE: Target(str(folder / CORE), protocol=CORE),
            **{name: target._replace(protocol=name) for name in names},
        }
        return take_turns(targets, EPISODES_BY_PROTOCOL, rounds=rounds, seconds=seconds)


def protocols_as_json(rounds: Rounds) -> dict[str, object]:
    """The keys of `.bench/protocols.json` about steps."""
    names = [name for name in rounds if name != CORE]
    return {
        "episodes": EPISODES_BY_PROTOCOL,
        "rates": {name: summary(own_rounds)._asdict() for name, own_rounds in rounds.items()},
        "added_p50_ms": {name: _added_p50_ms(rounds, name)._asdict() for name in names},
        "ratio": {name: ratio(rounds, name, CORE)._asdict() for name in names},
    }


def _added_p50_ms(rounds: Rounds, name: str) -> Spread:
    """The difference of a step's time to the core's, round by round."""
    pairs = zip(rounds[name], rounds[CORE], strict=True)
    return spread([own.p50_ms - core.p50_ms for own, core in pairs])


def show(rounds: Rounds, base: str) -> None:
    """Prints a table; the last column is steps per second over the base's."""
    episodes = next(iter(rounds.values()))[0].episodes
    print(f"{episodes:>5} episodes {'steps/s [low, high]':>26} p50 ms  p99 ms  CPU us of {base}")
    for name, own_rounds in rounds.items():
        medians, share = summary(own_rounds), ratio(rounds, name, base).median
        low, high = medians.steps_per_second_interval
        rate = f"{medians.steps_per_second:.0f} [{low:.0f}, {high:.0f}]"
        costs = f"{medians.p50_ms:6.2f} {medians.p99_ms:7.2f} {medians.server_us:7.0f}"
        print(f"{name:<14} {rate:>26} {costs} {share:6.2f}")
