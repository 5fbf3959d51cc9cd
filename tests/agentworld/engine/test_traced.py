import asyncio
import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from agentworld.engine.base import Completion, CompletionRequest
from agentworld.engine.fake import FakeEngine
from agentworld.engine.traced import TracedEngine
from agentworld.errors import EngineError
from agentworld.records.simulator import Sampling
from make import records

DIGEST = records.manifest().digest
MESSAGES = [{"role": "user", "content": "cat half-\ud800.txt"}]
SAMPLING = Sampling(temperature=0.5, top_p=0.9, top_k=40, max_tokens=64, stop=("END",))


@pytest.fixture
def spans():
    return InMemorySpanExporter()


@pytest.fixture
def trace(spans):
    """A function that asks once through a traced engine."""

    def ask(answer, seed=None, **settings):
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(spans))
        engine = TracedEngine(
            FakeEngine(answer),
            provider.get_tracer("test"),
            provider="vllm",
            model="world",
            simulator=DIGEST,
            **settings,
        )
        request = CompletionRequest(MESSAGES, SAMPLING, seed, "episode-1")
        return asyncio.run(engine.complete(request))

    return ask


def test_a_request_creates_a_chat_span_with_its_episode(trace, spans):
    trace(lambda _: Completion("kolu", 12, 3, "stop", None, 8, 0.25), seed=7)
    (span,) = spans.get_finished_spans()
    assert (span.name, span.kind) == ("chat world", SpanKind.CLIENT)
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "vllm",
        "gen_ai.request.model": "world",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.top_k": 40,
        "gen_ai.request.max_tokens": 64,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.request.seed": 7,
        "gen_ai.conversation.id": "episode-1",
        "gen_ai.response.model": f"world@{DIGEST}",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 8,
        "agentworld.simulator.digest": DIGEST,
        "agentworld.queued_seconds": 0.25,
    }


def test_message_content_is_in_no_span_by_default(trace, spans):
    trace(lambda _: "a secret of the world")
    (span,) = spans.get_finished_spans()
    assert "secret" not in span.to_json()
    assert "half-" not in span.to_json()


def test_message_content_is_in_the_span_when_enabled(trace, spans):
    trace(lambda _: "kolu", with_content=True)
    (span,) = spans.get_finished_spans()
    inputs, outputs = (
        json.loads(span.attributes[f"gen_ai.{side}.messages"]) for side in ("input", "output")
    )
    assert inputs == [
        {"role": "user", "parts": [{"type": "text", "content": "cat half-\ud800.txt"}]}
    ]
    assert outputs == [{"role": "assistant", "parts": [{"type": "text", "content": "kolu"}]}]


def test_a_failed_request_marks_its_span_with_the_error_kind_and_no_content(trace, spans):
    def fail(_):
        raise EngineError("there is no observation in 'a secret'", kind="unparsable")

    with pytest.raises(EngineError):
        trace(fail)
    (span,) = spans.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "unparsable")
    assert span.attributes["error.type"] == "unparsable"
    assert "secret" not in span.to_json()


def test_closing_the_engine_flushes_the_last_spans():
    flushed = []
    engine = TracedEngine(
        FakeEngine(lambda _: ""),
        TracerProvider().get_tracer("test"),
        provider="vllm",
        model="world",
        simulator=DIGEST,
        flush=lambda: flushed.append(1),
    )
    asyncio.run(engine.close())
    assert flushed == [1]
