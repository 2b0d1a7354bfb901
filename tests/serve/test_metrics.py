"""Figures for Prometheus, of one process and of several together."""

import asyncio
import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

import onebit
from onebit.serve.app import App
from onebit.serve.keys import make_key
from onebit.serve.sqlite_log import SQLiteLog
from services import InProcess, in_folder


def figures_of(text):
    """Return all samples by name and labels, and the type of each family."""
    families = list(text_string_to_metric_families(text))
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }
    return samples, {family.name: family.type for family in families}


def test_metrics_of_one_process(tmp_path):
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        service.rounds(3)
        samples, types = figures_of(service.send("GET", "/metrics").text)
    assert samples["onebit_requests_total", "POST /v1/models/{model}/decide", "200"] == 3
    assert samples["onebit_model_decisions_total", "m"] == 3
    assert samples["onebit_model_rows_total", "m"] == 7
    assert samples["onebit_model_awaited", "m"] == 0
    assert samples["onebit_flush_seconds_count",] >= 6
    assert samples["onebit_requests_in_flight",] == 1  # this one
    assert samples["onebit_processes",] == 1
    assert samples["process_cpu_seconds_total",] > 0
    assert samples["process_resident_memory_bytes",] > 2**20
    (build,) = (key for key in samples if key[0] == "onebit_build_info")
    assert onebit.__version__ in build
    counted = {"rows", "decisions", "explored", "right", "wrong", "expired"}
    for name in (*counted, "behind", "awaited"):
        assert types[f"onebit_model_{name}"] == ("counter" if name in counted else "gauge")


def test_metrics_of_several_processes_are_summed(tmp_path, monkeypatch):
    folder = tmp_path / "metrics"
    folder.mkdir()
    services = [InProcess(SQLiteLog(tmp_path / str(k))) for k in range(3)]
    for k, service in enumerate(services):
        service.app = App(SQLiteLog(tmp_path / str(k)), metrics=str(folder))
        monkeypatch.setattr(service.app.metrics, "_file", lambda k=k: folder / f"{k}.json")
    with services[0] as one, services[1] as other, services[2] as ended:
        for service, rounds in ((one, 2), (other, 5), (ended, 4)):
            service.make(learner="Banditron")
            service.rounds(rounds)
            service.do(publish_once(service.app.metrics))
        # What a process counted stays after its end; what it has now does not.
        for task in ended.app._tasks:
            ended.loop.call_soon_threadsafe(task.cancel)
        told = json.loads((folder / "2.json").read_bytes())
        (folder / "2.json").write_text(json.dumps(told | {"at": told["at"] - 60}))
        for service in (one, other):
            samples, _ = figures_of(service.send("GET", "/metrics").text)
            assert samples["onebit_requests_total", "POST /v1/models/{model}/decide", "200"] == 11
            assert samples["onebit_processes",] == 2
            # Of one log in this test's place of two: the process that has applied more of it.
            assert samples["onebit_model_decisions_total", "m"] == 5


async def publish_once(metrics):
    """Tell the others the figures once."""
    task = asyncio.ensure_future(metrics.publish())
    await asyncio.sleep(0.1)
    task.cancel()


def test_a_key_that_may_only_read(tmp_path):
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        log = service.app.service.log
        key = service.do(make_key(log, "prometheus", ["read"]))
        service.app.access.update(service.do(log.keys()))
        headers = {"authorization": f"Bearer {key}"}
        for path in ("/metrics", "/v1/models", "/v1/models/m", "/v1/models/m/decisions"):
            assert service.send("GET", path, headers=headers).status_code == 200
        for method, path in (
            ("GET", "/v1/models/m/log"),
            ("GET", "/v1/models/m/learner"),
            ("DELETE", "/v1/models/m"),
        ):
            assert service.send(method, path, headers=headers).status_code == 403
        with pytest.raises(ValueError, match="no scope"):
            service.do(make_key(log, "other", ["write"]))
