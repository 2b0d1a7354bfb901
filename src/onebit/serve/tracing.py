"""Traces for OpenTelemetry: a span for each request, an option of the service.

Nothing of OpenTelemetry is imported unless it is asked for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import onebit

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from onebit.serve.requests import Reply, Request
    from onebit.serve.routes import Match

SEND_SECONDS = 2.0
"""How long spans are tried to be sent, by default: a stop waits for that."""


class Tracing:
    """Makes spans of requests.

    The span of a request continues the trace that its header ``traceparent`` names. Its attributes
    follow the semantic conventions for HTTP; besides them, there are the model, the id of the
    request, and the number of decisions or feedbacks.

    Parameters
    ----------
    provider : TracerProvider
    """

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace import SpanKind, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer("onebit.serve", onebit.__version__)
        self._context_of = TraceContextTextMapPropagator().extract
        self._kind, self._error = SpanKind.SERVER, StatusCode.ERROR

    @classmethod
    def from_environment(cls) -> Tracing:
        """Return what sends spans by OTLP over HTTP, as the variables ``OTEL_...`` say."""
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ModuleNotFoundError as missing:
            raise ValueError(
                f"--opentelemetry needs {missing.name}: pip install 'onebit[opentelemetry]'"
            ) from None
        name = {} if "OTEL_SERVICE_NAME" in os.environ else {"service.name": "onebit"}
        provider = TracerProvider(resource=Resource.create(name), shutdown_on_exit=False)
        seconds = None if "OTEL_EXPORTER_OTLP_TIMEOUT" in os.environ else SEND_SECONDS
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=seconds)))
        return cls(provider)

    def record(self, request: Request, match: Match, reply: Reply, start: int, end: int) -> None:
        """Make the span of a request; times are in nanoseconds since 1970."""
        route, headers = match.route, request.head.headers
        if route.probe or not route.summary:
            return
        named = {
            name: headers[name.encode()].decode("latin-1")
            for name in ("traceparent", "tracestate")
            if name.encode() in headers
        }
        attributes: dict[str, Any] = {
            "http.request.method": request.head.method,
            "http.route": route.template,
            "http.response.status_code": reply.status,
            "onebit.request_id": reply.id.decode(),
        }
        if "model" in match.parameters:
            attributes["onebit.model"] = match.parameters["model"]
        if route.name in ("decide", "give_feedback") and request.body is not None:
            attributes["onebit.items"] = len(request.body) if isinstance(request.body, list) else 1
        span = self._tracer.start_span(
            match.label,
            context=self._context_of(named) if named else None,
            kind=self._kind,
            attributes=attributes,
            start_time=start,
        )
        if reply.status >= 500:
            span.set_status(self._error)
        span.end(end_time=end)

    def stop(self) -> None:
        """Send what is left."""
        self._provider.shutdown()
