"""An engine behind an OpenAI-compatible API: vLLM, `transformers serve`, or a third-party endpoint.

Connection failures become EngineErrors here; `answer` parses the responses.
"""

from collections.abc import Callable
from uuid import uuid4

import httpx

from agentworld.engine.answer import Question, read_answer
from agentworld.engine.base import Completion, CompletionRequest, EngineKind
from agentworld.engine.chat import CHAT_PATH, Fields, chat_body, no_response
from agentworld.engine.connections import Connections
from agentworld.engine.refusal import refusal
from agentworld.errors import InputError
from agentworld.records.garbled import redact
from agentworld.records.simulator import Sampling

REQUEST = "chat-completions-v1"
"""The version of the request's form, pinned in every simulator manifest.

It changes with the fields of the body, and with the replacement of lone surrogates, which no
request can contain.
"""
REQUEST_ID = "x-request-id"
"""The header from which vLLM and `transformers serve` derive the response's `id`."""


class OpenAIEngine:
    """Sends requests for the model `model` to the server at `url`.

    `fixed` is the sampling that the server was started for: `transformers serve` samples all
    answers as its first request asked, whatever later ones ask. `logprobs` requests the tokens'
    log-probabilities if this kind of server returns them. `api_key` is sent in a header only.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        kind: EngineKind = "openai",
        fixed: Sampling | None = None,
        logprobs: bool = False,
        api_key: str = "",
        concurrency: int = 32,
        timeout_seconds: float = 120.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.name = f"the engine at {redact(url)}"
        self._model = model
        self._kind = kind
        self._fixed = fixed
        self._authorisation = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._logprobs: Fields = {"logprobs": True} if logprobs and kind in _WITH_LOGPROBS else {}
        self._connections = Connections(
            url, concurrency=concurrency, timeout_seconds=timeout_seconds, transport=transport
        )

    async def complete(self, request: CompletionRequest) -> Completion:
        """The text that follows these messages; raises EngineError if there is none."""
        _check_fixed(request.sampling, self._fixed)
        body = request_body(self._kind, self._model, request) | self._logprobs
        question = Question(uuid4().hex, self._kind, self._model, request.sampling)
        headers = {REQUEST_ID: question.request}
        return read_answer(await self._send("POST", CHAT_PATH, headers, body), question)

    async def read(self, path: str) -> bytes:
        """The response to a GET; raises EngineError if it fails."""
        response = await self._send("GET", path, {})
        if response.status_code != httpx.codes.OK:
            raise refusal(response)
        return response.content

    async def has_route(self, path: str) -> bool:
        """Whether the server has a route at this path, for any method; raises EngineError if that
        is unknown.
        """
        response = await self._send("GET", path, {})
        if response.status_code in (httpx.codes.OK, httpx.codes.METHOD_NOT_ALLOWED):
            return True
        if response.status_code == httpx.codes.NOT_FOUND:
            return False
        raise refusal(response)

    async def close(self) -> None:
        """Closes the connections."""
        await self._connections.close()

    async def _send(
        self, method: str, path: str, headers: dict[str, str], body: Fields | None = None
    ) -> httpx.Response:
        headers = headers | self._authorisation
        try:
            return await self._connections.request(method, path, body, headers)
        except httpx.HTTPError as error:
            failure = no_response(self.name, error)
            # A third-party endpoint is usually reached over the internet, where most failures are
            # the network's.
            failure.is_down = isinstance(error, httpx.ConnectError) and self._kind != "openai"
            raise failure from error


def request_body(kind: EngineKind, model: str, request: CompletionRequest) -> Fields:
    """The request body for this kind of server: `transformers serve` refuses unknown fields."""
    sampling = request.sampling
    body = chat_body(model, request.messages) | {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
    }
    if request.seed is not None:
        body["seed"] = request.seed
    return body | _OWN_FIELDS[kind](sampling)


def _check_fixed(sampling: Sampling, fixed: Sampling | None) -> None:
    if fixed is None or _sampling_fields(sampling) == _sampling_fields(fixed):
        return
    raise InputError(
        f"this engine was started for {_sampling_fields(fixed)} as temperature, top_p and top_k and"
        f" cannot answer with {_sampling_fields(sampling)}; start another one"
    )


def _sampling_fields(sampling: Sampling) -> tuple[float, float, int]:
    return sampling.temperature, sampling.top_p, sampling.top_k


def _plain_fields(sampling: Sampling) -> Fields:
    if sampling.top_k:
        raise InputError(
            f"an engine of kind openai has no top_k; set it to 0, not {sampling.top_k}"
        )
    if sampling.thinking:
        raise InputError("an engine of kind openai cannot be told to think; set thinking to false")
    return {"stop": list(sampling.stop)} if sampling.stop else {}


def _vllm_fields(sampling: Sampling) -> Fields:
    stop: Fields = {"stop": list(sampling.stop)} if sampling.stop else {}
    # Tags of thoughts may be special tokens; without them a thought would be read as an
    # observation.
    return stop | {"top_k": sampling.top_k, "skip_special_tokens": False} | _thinking(sampling)


def _thinking(sampling: Sampling) -> Fields:
    return {"chat_template_kwargs": {"enable_thinking": sampling.thinking}}


# `transformers serve` ignores stop strings when it batches, so `answer` cuts the text.
_OWN_FIELDS: dict[EngineKind, Callable[[Sampling], Fields]] = {
    "openai": _plain_fields,
    "vllm": _vllm_fields,
    "transformers-serve": _thinking,
}

_WITH_LOGPROBS: tuple[EngineKind, ...] = ("vllm", "openai")
