"""A real vLLM on this machine, and our service that uses it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from agentworld.engine.server import ServedEngine, serve
from agentworld.pinning.manifest import pin
from agentworld.recipes.serve import EngineRecipe, SimulateRecipe
from agentworld.records.checkpoint import ArtifactManifest
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling, SimulatorManifest
from benchmarks.counting_model import ANSWER, CONTEXT_TOKENS, counting_model
from benchmarks.prefix import CacheCounts, read_counts
from benchmarks.servers import start_ours_on
from make import records

SAMPLING = Sampling(max_tokens=2 * len(ANSWER))
_ENGINE = EngineRecipe(kind="vllm")
# Large enough to take more than 100 ms for the response, on any current CPU.
_SIZE = {"num_layers": 6, "hidden_size": 256}


class Pair(NamedTuple):
    """The engine, with its own URL, and the service."""

    engine: ServedEngine
    service: str
    """Its URL."""

    def counts(self) -> CacheCounts:
        """The engine's counters of its prefix cache."""
        answer = httpx.get(f"{self.engine.url}/metrics", trust_env=False)
        return read_counts(answer.raise_for_status().text)

    def tokens(self, messages: list[Message], *, asks: bool) -> list[int]:
        """Messages as the engine's tokens; `asks` adds the generation prompt."""
        body = {"model": self.engine.model, "messages": messages, "add_generation_prompt": asks}
        answer = httpx.post(f"{self.engine.url}/tokenize", json=body, trust_env=False)
        tokens: list[int] = answer.raise_for_status().json()["tokens"]
        return tokens


@contextmanager
def start_pair(folder: Path) -> Iterator[Pair]:
    """Starts both; vLLM takes a minute."""
    model = counting_model(folder / "model", **_SIZE)
    manifest = _pin(model)
    engine_context = serve(
        model,
        _ENGINE,
        sampling=SAMPLING,
        context_tokens=CONTEXT_TOKENS,
        log=folder / "engine.log",
    )
    with engine_context as engine, start_ours_on(engine, manifest, folder) as service:
        yield Pair(engine, service)


def _pin(model: Path) -> SimulatorManifest:
    return pin(
        ArtifactManifest.of(model),
        SimulateRecipe(sampling=SAMPLING),
        _ENGINE,
        lock=records.digest("lock"),
        context_tokens=CONTEXT_TOKENS,
    )
