"""Metrics for Prometheus, of all processes of a service together."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path

import msgspec
from msgspec import Struct
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

import onebit
from onebit.core.replacing import replace_file
from onebit.serve.live import LiveModel
from onebit.serve.service import Service

PUBLISH_SECONDS = 1.0
"""Seconds between two times at which a process publishes its figures to the others."""

GONE_SECONDS = 5.0
"""Seconds after which a process that publishes nothing counts as ended."""

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
_ROWS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0)


class Histogram(Struct):
    """The number of values up to each bound, and their sum.

    Those of prometheus_client take locks, and take longer than a decision.
    """

    bounds: tuple[float, ...]
    counts: list[int]
    sum: float = 0.0

    @classmethod
    def empty(cls, bounds: tuple[float, ...]) -> Histogram:
        """Return a histogram without values."""
        return cls(bounds, [0] * (len(bounds) + 1))

    def observe(self, value: float) -> None:
        """Add a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add(self, other: Histogram) -> None:
        """Add the values of another histogram with the same bounds."""
        self.counts = [a + b for a, b in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum

    def add_to(self, family: HistogramMetricFamily, labels: list[str]) -> None:
        """Add the figures to a family."""
        names = [*map(str, self.bounds), "+Inf"]
        pairs = list(zip(names, accumulate(self.counts), strict=True))
        family.add_metric(labels, buckets=pairs, sum_value=self.sum)


class Figures(Struct):
    """What one process has counted, or several together."""

    at: float
    """When it was published, in seconds since 1970."""
    processes: int
    in_flight: int
    unread: int
    """Models that were not read from the log yet."""
    requests: dict[str, dict[str, int]]
    """By path and status."""
    seconds: dict[str, Histogram]
    """By path."""
    batch: Histogram
    flush: Histogram
    process: dict[str, float]
    """Figures of the operating system, by the names that Prometheus gives them."""
    models: dict[str, dict[str, int]]

    def add(self, other: Figures, *, alive: bool) -> None:
        """Add the figures of another process; counters stay after it has ended."""
        for path, counts in other.requests.items():
            mine = self.requests.setdefault(path, {})
            for status, n in counts.items():
                mine[status] = mine.get(status, 0) + n
        for path, histogram in other.seconds.items():
            self.seconds.setdefault(path, Histogram.empty(histogram.bounds)).add(histogram)
        self.batch.add(other.batch)
        self.flush.add(other.flush)
        for name, value in other.process.items():
            if name == "process_start_time_seconds":
                self.process[name] = min(self.process.get(name, value), value)
            elif alive or name.endswith("_total"):
                self.process[name] = self.process.get(name, 0.0) + value
        if alive:
            self.processes += other.processes
            self.in_flight += other.in_flight
            self.unread += other.unread
            for name, figures in other.models.items():
                # The process that has applied more of the log, so that no figure falls.
                if name in self.models and figures["rows"] > self.models[name]["rows"]:
                    self.models[name] = figures


class Metrics:
    """The metrics of requests, of writing and of models.

    Parameters
    ----------
    service : Service
    in_flight : callable
        Returns the number of requests that are being answered.
    folder : path, optional
        Where the processes of a service publish their figures to each other.
    """

    def __init__(
        self, service: Service, in_flight: Callable[[], int], folder: str | None = None
    ) -> None:
        self._service, self._in_flight = service, in_flight
        self._folder = None if folder is None else Path(folder)
        self._requests: dict[str, dict[str, int]] = {}
        self._seconds: dict[str, Histogram] = {}
        self._batch, self._flush = Histogram.empty(_ROWS), Histogram.empty(_SECONDS)
        self._process = ProcessCollector(registry=CollectorRegistry())
        service.writer.observe = self._observe_batch

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        if path not in self._requests:
            self._requests[path], self._seconds[path] = {}, Histogram.empty(_SECONDS)
        counts, name = self._requests[path], str(status)
        counts[name] = counts.get(name, 0) + 1
        self._seconds[path].observe(seconds)

    def _observe_batch(self, rows: int, seconds: float) -> None:
        self._batch.observe(rows)
        self._flush.observe(seconds)

    async def publish(self) -> None:
        """Publish the figures of this process to the others, every second."""
        while self._folder is not None:
            content = self.own()
            await asyncio.to_thread(replace_file, self._file(), content)
            await asyncio.sleep(PUBLISH_SECONDS)

    def own(self) -> bytes:
        """Return the figures of this process, in the form of `text`."""
        return msgspec.json.encode(self._figures())

    def text(self, own: bytes) -> bytes:
        """Return all figures, as Prometheus reads them; may run in another thread."""
        found = msgspec.json.decode(own, type=Figures)
        for other in self._others():
            found.add(other, alive=found.at - other.at < GONE_SECONDS)
        registry = CollectorRegistry()
        registry.register(_Collected(found))
        return generate_latest(registry)

    def _file(self) -> Path:
        assert self._folder is not None
        return self._folder / f"{os.getpid()}.json"

    def _others(self) -> Iterable[Figures]:
        if self._folder is None:
            return
        for path in sorted(self._folder.glob("*.json")):
            if path != self._file():
                yield msgspec.json.decode(path.read_bytes(), type=Figures)

    def _figures(self) -> Figures:
        samples = (sample for family in self._process.collect() for sample in family.samples)
        return Figures(
            at=time.time(),
            processes=1,
            in_flight=self._in_flight(),
            unread=len(self._service.unread),
            requests=self._requests,
            seconds=self._seconds,
            batch=self._batch,
            flush=self._flush,
            process={sample.name: sample.value for sample in samples},
            models={live.name: _figures_of(live) for live in self._service.live.values()},
        )


class _Collected:
    """Figures, in the families of Prometheus."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """Yield all figures."""
        found = self._figures
        build = {"version": onebit.__version__, "python": platform.python_version()}
        yield InfoMetricFamily("onebit_build", "What is running.", value=build)
        yield GaugeMetricFamily("onebit_processes", "Processes.", value=found.processes)
        about = "Requests that are being answered."
        yield GaugeMetricFamily("onebit_requests_in_flight", about, value=found.in_flight)
        about = "Models that were not read from the log yet, in all processes."
        yield GaugeMetricFamily("onebit_models_unread", about, value=found.unread)
        requests = CounterMetricFamily("onebit_requests", "Requests.", labels=["path", "status"])
        for path, counts in found.requests.items():
            for status, n in counts.items():
                requests.add_metric([path, status], n)
        yield requests
        about = "Time of a request."
        seconds = HistogramMetricFamily("onebit_request_seconds", about, labels=["path"])
        for path, histogram in found.seconds.items():
            histogram.add_to(seconds, [path])
        yield seconds
        for name, about, histogram in (
            ("onebit_batch_rows", "Rows of one flush.", found.batch),
            ("onebit_flush_seconds", "Time of a flush.", found.flush),
        ):
            family = HistogramMetricFamily(name, about, labels=[])
            histogram.add_to(family, [])
            yield family
        yield from self._of_process()
        yield from self._of_models()

    def _of_process(self) -> Iterator[Metric]:
        for name, value in self._figures.process.items():
            about = "Of all processes together."
            if name.endswith("_total"):
                yield CounterMetricFamily(name.removesuffix("_total"), about, value=value)
            else:
                yield GaugeMetricFamily(name, about, value=value)

    def _of_models(self) -> Iterator[Metric]:
        for name, (kind, about) in _OF_MODELS.items():
            family = kind(f"onebit_model_{name}", about, labels=["model"])
            for model, figures in self._figures.models.items():
                family.add_metric([model], figures[name])
            yield family


def _figures_of(live: LiveModel) -> dict[str, int]:
    statistics = live.model.meta.statistics
    found = {"rows": live.model.n, "behind": max(live.head - live.model.n, 0)}
    return found | {n: getattr(statistics, n) for n in _OF_MODELS if n not in found}


_OF_MODELS: dict[str, tuple[type[CounterMetricFamily] | type[GaugeMetricFamily], str]] = {
    "rows": (CounterMetricFamily, "Rows of the log that were applied."),
    "behind": (GaugeMetricFamily, "Rows of the log that are not applied yet."),
    "decisions": (CounterMetricFamily, "Decisions."),
    "explored": (CounterMetricFamily, "Decisions for another label than the greedy one."),
    "right": (CounterMetricFamily, "Feedback: right."),
    "wrong": (CounterMetricFamily, "Feedback: wrong."),
    "expired": (CounterMetricFamily, "Decisions for which no feedback came in time."),
    "awaited": (GaugeMetricFamily, "Decisions whose feedback may still come."),
}
