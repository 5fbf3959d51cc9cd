"""An engine behind an OpenAI-compatible API: vLLM, `transformers serve`, or somebody's endpoint.

Foreign errors become EngineError here and nowhere else. What is no whole answer is an error.
"""

from collections.abc import Callable, Sequence

import httpx
from pydantic import BaseModel, Field, JsonValue, ValidationError

from agentworld.engine.base import Completion, EngineKind
from agentworld.engine.connections import Connections
from agentworld.errors import EngineError, InputError
from agentworld.records.base import first_problem
from agentworld.records.message import Message
from agentworld.records.simulator import Sampling

CHAT_PATH = "/v1/chat/completions"

Fields = dict[str, JsonValue]


class OpenAIEngine:
    """Asks the model `model` of the server at `url`.

    `fixed` is the sampling that the server was started for: `transformers serve` draws every
    answer as its first request asked, whatever the later ones ask.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        kind: EngineKind = "openai",
        fixed: Sampling | None = None,
        concurrency: int = 32,
        timeout_seconds: float = 120.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._model = model
        self._kind = kind
        self._fixed = fixed
        self._connections = Connections(
            url, concurrency=concurrency, timeout_seconds=timeout_seconds, transport=transport
        )

    async def complete(
        self, messages: Sequence[Message], sampling: Sampling, seed: int | None = None
    ) -> Completion:
        """The text that follows these messages; raises EngineError where there is none."""
        _check_fixed(sampling, self._fixed)
        body = request_body(self._kind, self._model, messages, sampling, seed)
        try:
            response = await self._connections.request("POST", CHAT_PATH, body)
        except httpx.HTTPError as error:
            raise EngineError(
                f"the engine at {self._connections.url} gave no answer"
                f" ({type(error).__name__}); is it running?"
            ) from error
        return _completion(response, sampling)

    async def close(self) -> None:
        """Lets go of connections."""
        await self._connections.close()


def request_body(
    kind: EngineKind,
    model: str,
    messages: Sequence[Message],
    sampling: Sampling,
    seed: int | None = None,
) -> Fields:
    """The request as this kind of server takes it: `transformers serve` refuses other fields."""
    body: Fields = {
        "model": model,
        "messages": [{"role": m["role"], "content": m["content"]} for m in messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
    }
    if seed is not None:
        body["seed"] = seed
    return body | _OWN_FIELDS[kind](sampling)


def _check_fixed(sampling: Sampling, fixed: Sampling | None) -> None:
    if fixed is None or _drawing(sampling) == _drawing(fixed):
        return
    raise InputError(
        f"this engine was started for {_drawing(fixed)} as temperature, top_p and top_k and"
        f" cannot answer with {_drawing(sampling)}; start another one"
    )


def _drawing(sampling: Sampling) -> tuple[float, float, int]:
    return sampling.temperature, sampling.top_p, sampling.top_k


def _plain_fields(sampling: Sampling) -> Fields:
    if sampling.top_k:
        raise InputError(
            f"an engine of kind openai has no top_k; set it to 0, not {sampling.top_k}"
        )
    return {"stop": list(sampling.stop)} if sampling.stop else {}


def _vllm_fields(sampling: Sampling) -> Fields:
    stop: Fields = {"stop": list(sampling.stop)} if sampling.stop else {}
    # Tags of thoughts may be special tokens; without them a thought reads as an observation.
    return stop | {"top_k": sampling.top_k, "skip_special_tokens": False} | _thinking(sampling)


def _thinking(sampling: Sampling) -> Fields:
    return {"chat_template_kwargs": {"enable_thinking": sampling.thinking}}


# `transformers serve` ignores stop strings when it batches, hence the cut in `_completion`.
_OWN_FIELDS: dict[EngineKind, Callable[[Sampling], Fields]] = {
    "openai": _plain_fields,
    "vllm": _vllm_fields,
    "transformers-serve": _thinking,
}


class _Said(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Said
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: int
    completion_tokens: int


class _Answer(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage


def _completion(response: httpx.Response, sampling: Sampling) -> Completion:
    if response.is_error:
        raise _refusal(response)
    try:
        answer = _Answer.model_validate_json(response.content)
    except ValidationError as error:
        raise EngineError(f"the engine's answer is none: {first_problem(error)}") from error
    choice = answer.choices[0]
    text, stopped = _cut(choice.message.content or "", sampling.stop)
    # Asked again, a greedy engine says the same.
    again = sampling.temperature > 0
    if choice.finish_reason == "length" and not stopped:
        length = answer.usage.completion_tokens
        raise EngineError(
            f"the answer was cut off after {length} tokens; raise max_tokens",
            kind="cut-off",
            retryable=again,
        )
    if not text:
        raise EngineError("the engine's answer is empty", kind="unparsable", retryable=again)
    return Completion(text, answer.usage.prompt_tokens, answer.usage.completion_tokens, "stop")


def _cut(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop string, and whether there was one."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def _refusal(response: httpx.Response) -> EngineError:
    """The error behind a status: a server's own failure may pass, a refused request does not."""
    status = response.status_code
    said = " ".join(response.text.split())[:200]
    if status >= 500 or status == httpx.codes.TOO_MANY_REQUESTS:
        return EngineError(f"the engine failed with status {status}: {said!r}")
    kind = "context" if "context length" in said else "refused"
    return EngineError(
        f"the engine refused the request with status {status}: {said!r}", kind=kind, retryable=False
    )
