"""A small world model of real recordings beside the baselines: `make bench-recordings`.

`.bench/recordings.json`. tau-bench's airline, of which a hundred episodes are recorded, is
processed with the command line from the file to a served simulator, as domain `text`, split by
task. The model begins with random weights, because no other is available here, and trains on three
passes over the data.
"""

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import yaml

from agentworld.client.simulator import SimulatorClient
from agentworld.errors import SimulatorError
from agentworld.records.base import Digest
from agentworld.records.episode import EpisodeOpening
from agentworld.records.report import Estimate, WorldModelReport, WorldModelScore
from agentworld.records.run import RunOpening
from agentworld.records.sample import Sample
from agentworld.storage.pools import read_dataset, read_pool
from agentworld.storage.simulators import PinnedSimulator
from benchmarks.report import empty_folder, measured_on, publish

_SOURCE = "tau-bench-airline"
_STAGE = {
    "tokens_per_batch": 2_048,
    "learning_rate": 3e-3,
    "muon_learning_rate": 0.02,
    "gradient_checkpointing": False,
}
_RECIPE = {
    "name": "airline",
    "model": {
        "vocabulary_size": 2048,
        "hidden_size": 192,
        "intermediate_size": 512,
        "num_layers": 4,
        "context_tokens": 16_384,
        "num_warmup_texts": 0,
    },
    "collect": {"held_out_share": 0.4},
    "prepare": {"cpt_share": 0.5, "sft_share": 0.45},
    "cpt": {"stage": "cpt", "epochs": 12, **_STAGE},
    "sft": {"stage": "sft", "epochs": 12, **_STAGE},
    "evaluate": {"num_episodes": 20, "num_free_running": 2},
    "simulate": {"sampling": {"max_tokens": 1024}},
}


class Walk:
    """The commands of one run, with its own store."""

    def __init__(self, folder: Path) -> None:
        self._store = folder / "store"
        self._recipe = folder / "airline.yaml"
        self._recipe.write_text(yaml.safe_dump(_RECIPE))
        self.seconds: dict[str, float] = {}

    def command(self, *words: str, recipe: bool = True) -> list[str]:
        options = ["--store", str(self._store)]
        options += ["--recipe", str(self._recipe)] * recipe
        return [sys.executable, "-m", "agentworld_cli.main", *words, *options]

    def run(self, *words: str) -> str:
        """A command's first line of output, which is the output's folder or name."""
        start = time.monotonic()
        result = subprocess.run(self.command(*words), stdout=subprocess.PIPE, text=True, check=True)
        self.seconds[" ".join(words[:2])] = round(time.monotonic() - start, 1)
        print(f"{words[0]} {words[1]}: {self.seconds[' '.join(words[:2])]} s", file=sys.stderr)
        return result.stdout.splitlines()[0]


def main() -> int:
    """Publishes the table; no figure has a target."""
    machine_fields = measured_on()
    walk = Walk(empty_folder("recordings"))
    source = str(Path(os.environ["RECORDINGS"]) / _SOURCE)
    collection = walk.run("data", "import", source)
    data = Path(walk.run("data", "prepare", "--collected", collection))
    cpt = walk.run("train", "cpt", "--data", str(data))
    sft = walk.run("train", "sft", "--data", str(data), "--parent", cpt)
    stages = ["--cpt", cpt, "--sft", sft]
    folder = walk.run("evaluate", "stages", "--data", str(data), *stages)
    report = WorldModelReport.read(Path(folder) / "report.json")
    version = walk.run("world-model", "register", "--report", folder, *stages)
    simulator_folder = walk.run("simulator", "pin", version)
    episode = next(read_pool(data, read_dataset(data), "held_out"))
    steps = _served(walk, Path(simulator_folder), episode)
    scores = {**report.baselines, **report.stages}
    estimates = {name: _estimates(score) for name, score in scores.items()}
    means = {
        name: {metric: round(figure.mean, 4) for metric, figure in row.items()}
        for name, row in estimates.items()
    }
    intervals = {
        name: {
            metric: [round(figure.low, 4), round(figure.high, 4)] for metric, figure in row.items()
        }
        for name, row in estimates.items()
    }
    measured = {"seconds": walk.seconds, **steps, "scores": means, "scores_interval": intervals}
    return publish("recordings", {**machine_fields, **measured})


def _estimates(score: WorldModelScore) -> dict[str, Estimate]:
    return {"exact_match": score.exact_match, **score.metrics, **score.by_tag}


def _served(walk: Walk, simulator_folder: Path, episode: Sample) -> dict[str, int]:
    """Plays the actions of a held-out episode in the simulator; returns the number of responses."""
    command = walk.command(
        "simulator", "serve", str(simulator_folder), "--access", "local", recipe=False
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout
            url = service.stdout.readline().split()[-1]
            return asyncio.run(_play(url, PinnedSimulator.read(simulator_folder).digest, episode))
        finally:
            service.terminate()


async def _play(url: str, simulator: Digest, episode: Sample) -> dict[str, int]:
    client = SimulatorClient(url, simulator=simulator)
    opening = RunOpening(agent="recorded", starting_weights=simulator, simulator=simulator)
    run = await client.open_run(opening)
    start = episode.prompt.initial_state
    begun_episode = await client.begin(EpisodeOpening(run=run.id, initial_state=start))
    num_answered = 0
    failures = Counter[str]()
    for turn in episode.turns:
        try:
            await client.step(begun_episode.episode, turn.action)
        except SimulatorError as error:
            failures[error.kind] += 1
        else:
            num_answered += 1
    await client.close()
    return {"steps_answered": num_answered, **failures}


if __name__ == "__main__":
    sys.exit(main())
