"""Spans of a service's engine, if OpenTelemetry's variables name a collector."""

from opentelemetry import context, propagate
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from pydantic_settings import BaseSettings, SettingsConfigDict
from starlette.types import ASGIApp, Receive, Scope, Send

from agentworld import __version__
from agentworld.engine.base import Engine
from agentworld.engine.traced import TracedEngine
from agentworld.records.simulator import SimulatorManifest


class TracingSettings(BaseSettings):
    """The variables by which OpenTelemetry is switched on everywhere; the exporter reads more."""

    model_config = SettingsConfigDict(env_prefix="OTEL_", env_ignore_empty=True, frozen=True)

    sdk_disabled: bool = False
    """Switch tracing off."""
    exporter_otlp_endpoint: str | None = None
    """The collector to send spans to; unset sends none."""
    exporter_otlp_traces_endpoint: str | None = None
    """The collector for spans alone; it replaces `OTEL_EXPORTER_OTLP_ENDPOINT`."""
    instrumentation_genai_capture_message_content: bool = False
    """Write actions and observations into the spans."""

    @property
    def is_on(self) -> bool:
        """Whether a collector is configured."""
        endpoint = self.exporter_otlp_endpoint or self.exporter_otlp_traces_endpoint
        return bool(endpoint) and not self.sdk_disabled


class TraceContextMiddleware:
    """Makes a request's spans part of the trace in its `traceparent` header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # a lifespan scope has no headers
        headers = {
            name.decode(): value.decode("latin-1") for name, value in scope.get("headers", ())
        }
        token = context.attach(propagate.extract(headers))
        try:
            await self._app(scope, receive, send)
        finally:
            context.detach(token)


class Spans:
    """The spans of a process, if there is a collector; each names its simulator.

    They are sent in the background. If the collector does not answer, a warning is logged and
    nothing waits.
    """

    def __init__(self, settings: TracingSettings, exporter: SpanExporter | None = None) -> None:
        self._with_content = settings.instrumentation_genai_capture_message_content
        self._provider: TracerProvider | None = None
        if settings.is_on:
            self._provider = TracerProvider(resource=_resource())
            self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))

    def of(self, engine: Engine, manifest: SimulatorManifest, model: str) -> Engine:
        """The engine with a span for each request; unchanged without a collector."""
        provider = self._provider
        if provider is None:
            return engine
        return TracedEngine(
            engine,
            provider.get_tracer("agentworld", __version__),
            provider=manifest.engine.kind,
            model=model,
            simulator=manifest.digest,
            with_content=self._with_content,
            flush=provider.force_flush,
        )

    def join_trace(self, app: ASGIApp) -> ASGIApp:
        """The app with its callers' traces; unchanged without a collector."""
        return app if self._provider is None else TraceContextMiddleware(app)


def _resource() -> Resource:
    """OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override these."""
    defaults = {"service.name": "agentworld-simulator", "service.version": __version__}
    attributes = Resource.create().attributes
    own_attributes = {
        k: v for k, v in attributes.items() if not str(v).startswith("unknown_service")
    }
    return Resource({**defaults, **own_attributes})
