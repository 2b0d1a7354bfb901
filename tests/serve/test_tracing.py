"""Traces: a span for each request, with what is in it."""

import http.server
import sys
import threading

import pytest

from onebit.serve.app import App
from onebit.serve.sqlite_log import SQLiteLog
from onebit.serve.tracing import Tracing
from services import SMALL, InProcess

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}


def with_tracing(folder, tracing):
    service = InProcess(SQLiteLog(folder))
    service.app = App(SQLiteLog(folder), tracing=tracing)
    return service


@pytest.fixture
def traced(tmp_path):
    """A service whose spans are kept, and a function that returns and forgets them."""
    pytest.importorskip("opentelemetry.sdk", reason="pip install 'onebit[opentelemetry]'")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    def spans():
        found = exporter.get_finished_spans()
        exporter.clear()
        return found

    with with_tracing(tmp_path, Tracing(provider)) as service:
        yield service, spans


def test_each_request_has_a_span(traced):
    service, spans = traced
    service.make(learner="Banditron", **SMALL)
    (span,) = spans()
    assert span.name == "POST /v1/models"
    assert "onebit.model" not in span.attributes
    path = "/v1/models/m/decide"
    made = service.ask("POST", path, [{"record": "card"}] * 3, headers=PARENT)
    (span,) = spans()
    assert span.name == "POST /v1/models/{model}/decide"
    assert span.kind.name == "SERVER"
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == PARENT["traceparent"].split("-")[2]
    assert 0 < span.end_time - span.start_time < 10e9
    found = dict(span.attributes)
    assert found.pop("onebit.request_id")
    assert found == {
        "http.request.method": "POST",
        "http.route": "/v1/models/{model}/decide",
        "http.response.status_code": 200,
        "onebit.model": "m",
        "onebit.items": 3,
    }
    headers = {"x-request-id": "mine"}
    said = {"id": made[0]["id"], "correct": True}
    service.ask("POST", "/v1/models/m/feedback", said, headers=headers)
    (span,) = spans()
    assert span.parent is None
    assert (span.attributes["onebit.items"], span.attributes["onebit.request_id"]) == (1, "mine")


def test_refusals_have_spans_and_probes_have_none(traced):
    service, spans = traced
    service.ask("POST", "/v1/models/none/decide", {"record": "card"}, 404)
    service.ask("POST", "/v1/models/none/feedback", {"id": 3}, 422)
    assert [span.attributes["http.response.status_code"] for span in spans()] == [404, 422]
    service.ask("GET", "/health")
    service.ask("GET", "/ready")
    service.send("GET", "/page.js")
    service.ask("GET", "/nothing", status=404)
    assert spans() == ()
    service.app.stopping = True
    service.app.service.find = None
    service._http._transport.raise_app_exceptions = False
    service.send("GET", "/v1/models/m")
    (span,) = spans()
    assert span.status.status_code.name == "ERROR"


class _Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        content = self.rfile.read(int(self.headers["content-length"]))
        self.server.received.append((self.path, content))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_spans_are_sent_by_otlp(tmp_path, monkeypatch):
    pytest.importorskip("opentelemetry.exporter", reason="pip install 'onebit[opentelemetry]'")
    with http.server.HTTPServer(("127.0.0.1", 0), _Collector) as server:
        server.received = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        with with_tracing(tmp_path, Tracing.from_environment()) as service:
            service.ask("GET", "/v1/models")
        server.shutdown()  # the service sent what was left when it stopped
    ((path, content),) = server.received
    assert path == "/v1/traces"
    assert b"GET /v1/models" in content
    assert b"service.name" in content


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace.export", None)
    with pytest.raises(ValueError, match=r"pip install 'onebit\[opentelemetry\]'"):
        Tracing.from_environment()
