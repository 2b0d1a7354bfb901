"""Metrics for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from onebit.serve.service import Service

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
_ROWS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0)


class Histogram:
    """The number of values up to each bound, and their sum.

    Those of prometheus_client take locks, and take longer than a decision.
    """

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds, self._counts, self._sum = bounds, [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        """Take a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def add_to(self, family: HistogramMetricFamily, labels: list[str]) -> None:
        """Add the figures to a family."""
        names = [*map(str, self._bounds), "+Inf"]
        pairs = list(zip(names, accumulate(self._counts), strict=True))
        family.add_metric(labels, buckets=pairs, sum_value=self._sum)


class Metrics:
    """The metrics of requests, of writing and of models."""

    def __init__(self, service: Service) -> None:
        self._service, self._registry = service, CollectorRegistry()
        self._requests: dict[tuple[str, int], int] = {}
        self._seconds: dict[str, Histogram] = {}
        self._batch, self._flush = Histogram(_ROWS), Histogram(_SECONDS)
        self._registry.register(self)
        service.writer.observe = self._observe_batch

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests[path, status] = self._requests.get((path, status), 0) + 1
        if path not in self._seconds:
            self._seconds[path] = Histogram(_SECONDS)
        self._seconds[path].observe(seconds)

    def _observe_batch(self, rows: int, seconds: float) -> None:
        self._batch.observe(rows)
        self._flush.observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield all figures, as they are now."""
        requests = CounterMetricFamily("onebit_requests", "Requests.", labels=["path", "status"])
        for (path, status), n in self._requests.items():
            requests.add_metric([path, str(status)], n)
        yield requests
        about = "Time of a request."
        seconds = HistogramMetricFamily("onebit_request_seconds", about, labels=["path"])
        for path, histogram in self._seconds.items():
            histogram.add_to(seconds, [path])
        yield seconds
        for name, about, histogram in (
            ("onebit_batch_rows", "Rows of one flush.", self._batch),
            ("onebit_flush_seconds", "Time of a flush.", self._flush),
        ):
            family = HistogramMetricFamily(name, about, labels=[])
            histogram.add_to(family, [])
            yield family
        for name, about in _OF_MODELS.items():
            gauge = GaugeMetricFamily(f"onebit_model_{name}", about, labels=["model"])
            for live in self._service.live.values():
                values = {"rows": live.model.n, "behind": live.head - live.model.n}
                value = values.get(name)
                if value is None:
                    value = getattr(live.model.meta.statistics, name)
                gauge.add_metric([live.name], value)
            yield gauge

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
