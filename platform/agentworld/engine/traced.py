"""Records a span for every request to an engine, by OpenTelemetry's conventions for generative AI.
https://github.com/open-telemetry/semantic-conventions-genai: `chat` spans of a client. The
conversation is the episode; the answering model is the simulator's digest.
"""

import asyncio
import json
from collections.abc import Callable, Sequence

from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.util.types import AttributeValue

from agentworld.engine.base import Completion, CompletionRequest, Engine
from agentworld.errors import EngineError
from agentworld.records.base import Digest
from agentworld.records.message import Message

Attributes = dict[str, AttributeValue]


class TracedEngine:
    """An engine with spans; they contain texts only if `with_content` is set."""

    def __init__(
        self,
        engine: Engine,
        tracer: Tracer,
        *,
        provider: str,
        model: str,
        simulator: Digest,
        with_content: bool = False,
        flush: Callable[[], object] = lambda: None,
    ) -> None:
        self._engine = engine
        self._tracer = tracer
        self._provider = provider
        self._model = model
        self._simulator = simulator
        self._with_content = with_content
        self._flush = flush

    async def complete(self, request: CompletionRequest) -> Completion:
        """The engine's answer; the span of a failure has its kind."""
        attributes = self._request_attributes(request)
        with self._tracer.start_as_current_span(
            f"chat {self._model}",
            kind=SpanKind.CLIENT,
            attributes=attributes,
            record_exception=False,  # the message may quote texts
            set_status_on_exception=False,
        ) as span:
            if self._with_content:
                span.set_attribute("gen_ai.input.messages", _messages_json(request.messages))
            try:
                completion = await self._engine.complete(request)
            except EngineError as error:
                _fail(span, error)
                raise
            span.set_attributes(self._response_attributes(completion))
            return completion

    async def close(self) -> None:
        """Closes the engine's connections, and sends the last spans."""
        await self._engine.close()
        await asyncio.to_thread(self._flush)

    def _request_attributes(self, request: CompletionRequest) -> Attributes:
        sampling = request.sampling
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._provider,
            "gen_ai.request.model": self._model,
            "gen_ai.request.temperature": sampling.temperature,
            "gen_ai.request.top_p": sampling.top_p,
            "gen_ai.request.max_tokens": sampling.max_tokens,
            "gen_ai.conversation.id": request.affinity,
            "agentworld.simulator.digest": self._simulator,
        }
        if sampling.top_k:
            attributes["gen_ai.request.top_k"] = sampling.top_k
        if sampling.stop:
            attributes["gen_ai.request.stop_sequences"] = sampling.stop
        if request.seed is not None:
            attributes["gen_ai.request.seed"] = request.seed
        return attributes

    def _response_attributes(self, completion: Completion) -> Attributes:
        attributes: Attributes = {
            "gen_ai.response.model": f"{self._model}@{self._simulator}",
            "gen_ai.response.finish_reasons": (completion.finish_reason,),
            "gen_ai.usage.input_tokens": completion.num_prompt_tokens,
            "gen_ai.usage.output_tokens": completion.num_tokens,
            "gen_ai.usage.cache_read.input_tokens": completion.num_cached_tokens,
            "agentworld.queued_seconds": completion.queued_seconds,
        }
        if self._with_content:
            message = Message(role="assistant", content=completion.text)
            attributes["gen_ai.output.messages"] = _messages_json([message])
        return attributes


def _fail(span: Span, error: EngineError) -> None:
    """Records the kind of an error only."""
    span.set_attribute("error.type", error.kind)
    span.set_status(StatusCode.ERROR, error.kind)


def _messages_json(messages: Sequence[Message]) -> str:
    """ASCII, because a text may have lone surrogates."""
    return json.dumps(
        [
            {"role": message["role"], "parts": [{"type": "text", "content": message["content"]}]}
            for message in messages
        ]
    )
