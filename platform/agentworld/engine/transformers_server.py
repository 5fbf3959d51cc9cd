"""The engine of transformers as a server: `python -m agentworld.engine.transformers_server MODEL`.

It is built from the parts of `transformers serve`, with four differences. An adapter in the model's
folder is merged into its weights. A prompt that does not fit is refused before it is batched with
other requests, which would fail with it. If the batching ends nevertheless, the process ends, so
that its parent notices. And no route lets a client load another model.
"""

import argparse
import asyncio
import inspect
import sys
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException
from transformers import ContinuousBatchingConfig, PreTrainedModel
from transformers.cli.serving.chat_completion import ChatCompletionHandler
from transformers.cli.serving.model_manager import ModelManager
from transformers.cli.serving.server import build_server
from transformers.cli.serving.utils import GenerationState

from agentworld.engine.merging import merge_adapter

_ROUTES = ("/v1/chat/completions", "/health")
_SECONDS_BETWEEN_LOOKS = 0.2
_GRACE_SECONDS = 5


class _Models(ModelManager):
    """Loads one model as transformers does, with its adapter."""

    def __init__(self, folder: str, **options: Any) -> None:
        self._folder = Path(folder)
        super().__init__(force_model=folder, **options)

    def _load_model(self, *arguments: Any, **options: Any) -> PreTrainedModel:
        return merge_adapter(super()._load_model(*arguments, **options), self._folder)


class _Handler(ChatCompletionHandler):
    """Refuses prompts that do not fit; everything else is transformers' own."""

    def __init__(self, models: ModelManager, state: GenerationState, most_tokens: int) -> None:
        super().__init__(model_manager=models, generation_state=state)
        self._most_tokens = most_tokens

    async def _non_streaming(
        self,
        request_id: str,
        model: Any,
        processor: Any,
        model_id: str,
        inputs: Any,
        gen_config: Any,
        gen_manager: Any,
        **rest: Any,
    ) -> Any:
        read = inputs["input_ids"]  # a list if batched, otherwise a tensor of one row
        num_prompt_tokens = len(read) if isinstance(read, list) else read.shape[-1]
        self._check_fits(num_prompt_tokens, gen_config.max_new_tokens)
        return await super()._non_streaming(
            request_id, model, processor, model_id, inputs, gen_config, gen_manager, **rest
        )

    def _streaming(self, *_arguments: Any, **_keywords: Any) -> Any:
        raise HTTPException(400, "streaming is not supported; leave `stream` out")

    def _check_fits(self, num_prompt_tokens: int, num_answer_tokens: int) -> None:
        if num_prompt_tokens + num_answer_tokens > self._most_tokens:
            raise HTTPException(
                400,
                f"{num_prompt_tokens} tokens and an answer of {num_answer_tokens} do not fit in the"
                f" context length of {self._most_tokens}",
            )


def _app(options: argparse.Namespace, state: GenerationState) -> FastAPI:
    models = _Models(options.model, device=options.device, dtype=options.dtype)
    cache_tokens = options.cb_num_blocks * options.cb_block_size  # the cache's limit for a request
    handler = _Handler(models, state, min(options.context_tokens, cache_tokens))
    # Releases of transformers differ in the handlers of other routes, which are removed below.
    parameters = inspect.signature(build_server).parameters
    handlers = {name: None for name in parameters if name.endswith("_handler")}
    app: FastAPI = build_server(
        models, **handlers | {"chat_handler": handler}, generation_state=state
    )
    app.router.routes = [
        route for route in app.router.routes if getattr(route, "path", "") in _ROUTES
    ]
    return app


async def _serve(server: uvicorn.Server, state: GenerationState) -> bool:
    """Serves until it is stopped, or its batching ends; returns whether the batching works."""
    serving = asyncio.create_task(server.serve())
    while not serving.done() and state.is_cb_alive():
        await asyncio.wait({serving}, timeout=_SECONDS_BETWEEN_LOOKS)
    is_alive: bool = state.is_cb_alive()
    server.should_exit = True
    await serving
    return is_alive


def _options(arguments: list[str]) -> argparse.Namespace:
    """The options of `transformers serve` that a manifest pins, and the context length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="the folder")
    parser.add_argument("--continuous-batching", action="store_true", required=True)
    for name in ("cb-num-blocks", "cb-max-batch-tokens", "cb-block-size", "context-tokens", "port"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("device", "dtype", "host"):
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args(arguments)


def main() -> int:
    """Serves until it is stopped; exit status 1 if its batching failed."""
    options = _options(sys.argv[1:])
    batching = ContinuousBatchingConfig(
        page_size=options.cb_block_size,
        num_blocks=options.cb_num_blocks,
        max_batch_tokens=options.cb_max_batch_tokens,
    )
    state = GenerationState(continuous_batching=True, cb_config=batching)
    config = uvicorn.Config(
        _app(options, state),
        host=options.host,
        port=options.port,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    if asyncio.run(_serve(uvicorn.Server(config), state)):
        return 0
    sys.stderr.write("the engine's batching ended, for the reason above; start it again\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
