"""Starts an engine for a checkpoint: a server process on the loopback that ends with the block."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import NamedTuple

import httpx

from agentworld.engine.adapter import ADAPTER, adapter_arguments
from agentworld.engine.base import CompletionRequest, EngineKind
from agentworld.engine.chat import CHAT_PATH, Fields
from agentworld.engine.http_client import open_client
from agentworld.engine.openai import OpenAIEngine, request_body
from agentworld.engine.process import LOOPBACK, Server, free_port, running
from agentworld.engine.programs import (
    INHERITED,
    engine_arguments,
    engine_environment,
    engine_version,
    program,
)
from agentworld.engine.servable import check_servable
from agentworld.errors import EngineError
from agentworld.recipes.serve import EngineRecipe
from agentworld.records.file import read_regular
from agentworld.records.simulator import Sampling

_READY_SECONDS = 600.0


class ServedEngine(NamedTuple):
    """A running engine that has answered once."""

    url: str
    model: str
    kind: EngineKind
    version: str
    sampling: Sampling
    concurrency: int
    server: Server

    def connect(self) -> OpenAIEngine:
        """An engine object for code in this process."""
        return OpenAIEngine(
            self.url,
            self.model,
            kind=self.kind,
            fixed=self.sampling if self.kind == "transformers-serve" else None,
            concurrency=self.concurrency,
        )


@contextmanager
def serve(
    model_folder: Path,
    recipe: EngineRecipe,
    *,
    sampling: Sampling,
    context_tokens: int,
    log: Path,
    port: int | None = None,
    stopping: Event | None = None,
) -> Iterator[ServedEngine]:
    """Serves a folder with weights, tokenizer and chat template on the loopback: on this port, or
    on a free one. Setting `stopping` cancels the start. Raises InputError for a model that the
    engine cannot serve, and EngineError with the end of the log if the engine does not start or
    ends by itself.
    """
    check_servable(recipe, model_folder)
    kind, version = recipe.kind, engine_version(recipe.kind)
    port, folder = port or free_port(), model_folder.resolve()
    adapter = adapter_arguments(kind, folder)
    model = ADAPTER if adapter else str(folder)
    command = [
        *(sys.executable, *program(kind).command, str(folder)),
        *engine_arguments(recipe, context_tokens),
        *adapter,
        *program(kind).limits(context_tokens),
        *("--host", LOOPBACK, "--port", str(port)),
    ]
    environment = engine_environment(recipe)
    name = f"the engine {kind}"
    with running(name, command, environment, port, log, inherited=INHERITED) as server:
        server.wait_until_ready("/health", _READY_SECONDS, stopping)
        _ask_once(server, kind, model, sampling)
        yield ServedEngine(server.url, model, kind, version, sampling, recipe.concurrency, server)


def _ask_once(server: Server, kind: EngineKind, model: str, sampling: Sampling) -> None:
    """Sends the first request, which fixes how `transformers serve` samples all later answers, and
    proves that it answers.
    """
    request = CompletionRequest([{"role": "user", "content": "hi"}], sampling)
    body = request_body(kind, model, request)
    body["max_tokens"] = 1
    if kind == "transformers-serve" and sampling.temperature > 0:
        body["generation_config"] = json.dumps(_drawing_config(Path(model), sampling))
    try:
        with open_client(server.url, timeout_seconds=_READY_SECONDS) as client:
            client.post(server.url + CHAT_PATH, json=body).raise_for_status()
    except httpx.HTTPError as error:
        server.check()
        raise EngineError(f"{server.name} cannot answer: {error}; read {server.log}") from error


def _drawing_config(model_folder: Path, sampling: Sampling) -> Fields:
    """The model's generation defaults, sampling: the server accepts top_k in no other way."""
    file = model_folder / "generation_config.json"
    defaults: Fields = json.loads(read_regular(file)) if file.is_file() else {}
    return defaults | {"do_sample": True, "top_k": sampling.top_k}
