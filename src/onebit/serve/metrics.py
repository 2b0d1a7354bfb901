"""Figures for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily

from onebit.serve.service import Service

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
_ROWS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)


class Metrics:
    """What is counted of requests, of writing and of models."""

    def __init__(self, service: Service) -> None:
        self._service, self._registry = service, CollectorRegistry()
        self._requests = Counter(
            "onebit_requests", "Requests.", ["path", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "onebit_request_seconds",
            "Time of a request.",
            ["path"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._batch = Histogram(
            "onebit_batch_rows", "Rows of one flush.", buckets=_ROWS, registry=self._registry
        )
        self._flush = Histogram(
            "onebit_flush_seconds", "Time of a flush.", buckets=_SECONDS, registry=self._registry
        )
        self._children: dict[Any, tuple[Any, Any]] = {}
        self._registry.register(self)
        service.writer.observe = self._observe_batch

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        children = self._children.get((path, status))
        if children is None:
            children = self._requests.labels(path, status), self._seconds.labels(path)
            self._children[path, status] = children
        children[0].inc()
        children[1].observe(seconds)

    def _observe_batch(self, rows: int, seconds: float) -> None:
        self._batch.observe(rows)
        self._flush.observe(seconds)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the figures of models, as they are now."""
        for name, about in _OF_MODELS.items():
            family = GaugeMetricFamily(f"onebit_model_{name}", about, labels=["model"])
            for live in self._service.live.values():
                values = {"rows": live.model.n, "behind": live.head - live.model.n}
                value = values.get(name)
                if value is None:
                    value = getattr(live.model.meta.statistics, name)
                family.add_metric([live.name], value)
            yield family

    def text(self) -> bytes:
        """Return all figures, as Prometheus reads them."""
        return generate_latest(self._registry)


_OF_MODELS = {
    "rows": "Rows of the log that the model knows.",
    "behind": "Rows of the log that it does not know yet.",
    "decisions": "Decisions.",
    "explored": "Decisions for another label than the greedy one.",
    "right": "Feedback that said right.",
    "wrong": "Feedback that said wrong.",
    "expired": "Decisions for which no feedback came in time.",
    "awaited": "Decisions whose feedback may still come.",
}
