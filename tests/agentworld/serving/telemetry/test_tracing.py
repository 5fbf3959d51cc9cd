import asyncio
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from agentworld.engine.base import CompletionRequest
from agentworld.engine.fake import FakeEngine
from agentworld.records.simulator import Sampling
from agentworld.serving.telemetry.tracing import Spans, TraceContextMiddleware, TracingSettings
from make import records

MANIFEST = records.manifest()
ENGINE = FakeEngine(lambda _: "kolu")


@contextmanager
def collector():
    """Receives spans like an OpenTelemetry collector: protobuf over HTTP."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments):
            """Logs no requests."""

    requests = []
    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()


def ask(*engines):
    async def work():
        message = {"role": "user", "content": "ls"}
        request = CompletionRequest([message], Sampling(), affinity="episode-1")
        for engine in engines:
            await engine.complete(request)
            await engine.close()

    asyncio.run(work())


def traced_engines(*manifests):
    """Engines of one process, each of another simulator."""
    spans = Spans(TracingSettings())
    return [spans.of(ENGINE, manifest, "world") for manifest in manifests or (MANIFEST,)]


def values_of(attributes):
    return {attribute.key: attribute.value.string_value for attribute in attributes}


def test_without_a_collector_engines_are_not_traced():
    spans = Spans(TracingSettings())
    assert spans.of(ENGINE, MANIFEST, "world") is ENGINE
    assert spans.join_trace(ask) is ask


@pytest.mark.parametrize("name", ["EXPORTER_OTLP_ENDPOINT", "EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_the_standard_opentelemetry_variables_turn_tracing_on_and_off(monkeypatch, name):
    monkeypatch.setenv(f"OTEL_{name}", "http://127.0.0.1:9")
    assert TracingSettings().is_on
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert not TracingSettings().is_on


def test_a_collector_gets_a_span_with_episode_and_simulator_digest(monkeypatch):
    with collector() as (url, requests):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        ask(*traced_engines())
    (spans,) = (resource_span for request in requests for resource_span in request.resource_spans)
    resource = values_of(spans.resource.attributes)
    assert resource["service.name"] == "agentworld-simulator"
    (span,) = spans.scope_spans[0].spans
    assert values_of(span.attributes)["gen_ai.conversation.id"] == "episode-1"
    assert values_of(span.attributes)["agentworld.simulator.digest"] == MANIFEST.digest


def test_each_span_names_its_simulator_in_a_process_of_several_simulators(monkeypatch):
    other_manifest = records.manifest(control_text="another")
    with collector() as (url, requests):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        ask(*traced_engines(MANIFEST, other_manifest))
    resources = [resource for request in requests for resource in request.resource_spans]
    spans = [span for resource in resources for span in resource.scope_spans[0].spans]
    digests = [values_of(span.attributes)["agentworld.simulator.digest"] for span in spans]
    assert digests == [MANIFEST.digest, other_manifest.digest]


def test_an_unreachable_collector_is_logged_and_fails_no_request(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    ask(*traced_engines())
    assert "Failed to export" in caplog.text


def test_otel_service_name_overrides_the_default_service_name(monkeypatch):
    with collector() as (url, requests):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "blue")
        ask(*traced_engines())
    assert values_of(requests[0].resource_spans[0].resource.attributes)["service.name"] == "blue"


def test_a_request_joins_the_trace_of_its_traceparent_header():
    contexts = []

    async def app(_scope, _receive, _send):
        contexts.append(trace.get_current_span().get_span_context())

    def call(scope):
        asyncio.run(TraceContextMiddleware(app)({"type": "http", **scope}, None, None))

    call({"headers": [(b"traceparent", b"00-" + b"a1" * 16 + b"-" + b"b2" * 8 + b"-01")]})
    call({"headers": [(b"traceparent", b"garbage \xff")]})
    call({})
    assert [(f"{context.trace_id:x}", context.is_valid) for context in contexts] == [
        ("a1" * 16, True),
        ("0", False),
        ("0", False),
    ]
