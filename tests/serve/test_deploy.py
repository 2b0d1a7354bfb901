"""The files in `deploy/`: checked by their own tools, and run as far as they can be here."""

import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import httpx
import pytest

from services import OwnProcess, in_folder

DEPLOY = Path(__file__).parents[2] / "deploy"


def needs(*tools):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def test_dashboard_and_alerts_ask_for_metrics_that_exist(tmp_path):
    with in_folder(tmp_path) as service:
        service.make()
        service.rounds(1)
        text = service.send("GET", "/metrics").text
    known = set(re.findall(r"^([a-z_]+)", text, re.MULTILINE))
    dashboard = json.loads((DEPLOY / "grafana" / "dashboards" / "onebit.json").read_text())
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    asked += dashboard["templating"]["list"][0]["query"]
    asked += (DEPLOY / "prometheus" / "alerts.yml").read_text().partition("rules:")[2]
    names = set(re.findall(r"\b((?:onebit|process)_[a-z_]+)", asked))
    assert len(names) > 8
    assert names <= known


def test_the_image_is_built_from_what_the_wheel_needs_alone():
    ignored, *lines = (DEPLOY.parent / ".dockerignore").read_text().splitlines()[1:]
    assert ignored == "*"  # above all passwords and certificates, which are in deploy/
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    needed = {"src", "pyproject.toml", project["project"]["readme"]}
    needed |= {*project["project"]["license-files"]}
    hooks = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]
    needed |= {hook["path"] for hook in hooks.values()}
    assert {line.removeprefix("!") for line in lines} == needed
    assert all((DEPLOY.parent / name).exists() for name in needed)


def test_keys_come_before_a_service_that_others_can_reach():
    """It would not start without one, and nothing could be run in its container."""
    compose, kubernetes = (DEPLOY / "README.md").read_text().split("For Kubernetes")
    assert max(found.start() for found in re.finditer("key add", compose)) < compose.index(" up ")
    assert kubernetes.index("key add") < kubernetes.index("kubectl apply")


@needs("promtool")
def test_prometheus_accepts_its_configuration(tmp_path):
    shutil.copytree(DEPLOY / "prometheus", tmp_path / "prometheus")
    (tmp_path / "prometheus" / "onebit.key").write_text("key")
    said = run("promtool", "check", "config", tmp_path / "prometheus" / "prometheus.yml")
    assert "5 rules found" in said


@needs("systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path):
    unit = tmp_path / "onebit.service"
    content = (DEPLOY / "onebit.service").read_text()
    unit.write_text(content.replace("/opt/onebit/bin/onebit", shutil.which("true")))
    assert "onebit.service" not in run("systemd-analyze", "verify", unit)


@needs("yamllint")
def test_files_in_yaml_are_clean():
    rules = "{extends: relaxed, rules: {line-length: {max: 140}}}"
    run("yamllint", "--strict", "-d", rules, DEPLOY)


@pytest.mark.slow
@needs("nginx", "prometheus", "openssl")
def test_a_decision_through_the_proxy_is_seen_by_prometheus(tmp_path):
    data = tmp_path / "data"
    command = [sys.executable, "-m", "onebit", "key", "add", "all", "--scopes", "admin"]
    key = run(*command, "--data", data).split()[-1]
    service = OwnProcess("--data", str(data), "--trusted-proxy", "127.0.0.1")
    service.wait()
    started = [_proxy(tmp_path, service.port), _prometheus(tmp_path, service.port, key)]
    try:
        (_, https), (_, metrics) = started
        context = ssl.create_default_context(cafile=tmp_path / "server.crt")
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=https, verify=context, headers=headers, timeout=30) as client:
            _wait(lambda: client.get("/ready").status_code == 200)
            assert client.get("/metrics").status_code == 404
            spec = {"name": "m", "labels": ["a", "b"], "learner": "Banditron", "n_features": 64}
            assert client.post("/v1/models", json=spec).status_code == 200
            assert client.post("/v1/models/m/decide", json={"record": "x"}).status_code == 200
        query = {"query": "onebit_model_decisions_total"}

        def seen():
            found = httpx.get(f"{metrics}/api/v1/query", params=query).json()["data"]["result"]
            return [(one["metric"]["model"], one["value"][1]) for one in found] == [("m", "1")]

        _wait(seen)
    finally:
        for process, _ in started:
            process.terminate()
            process.wait(20)
        service.kill(signal.SIGTERM)


def _proxy(folder, service_port):
    """Start nginx by the file in `deploy/`, with addresses and certificates of this machine."""
    port = free_port()
    run(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
        *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        *("-keyout", folder / "server.key", "-out", folder / "server.crt"),
    )
    content = (DEPLOY / "proxy" / "nginx.conf").read_text()
    for old, new in [
        ("server service:8000", f"server 127.0.0.1:{service_port}"),
        ("listen 8443", f"listen 127.0.0.1:{port}"),
        ("/etc/nginx/certificates", str(folder)),
        ("/tmp/nginx", f"{folder}/nginx"),
    ]:
        assert old in content
        content = content.replace(old, new)
    (folder / "nginx.conf").write_text(content)
    command = ["nginx", "-c", folder / "nginx.conf", "-g", "daemon off;"]
    run(*command, "-t")
    return subprocess.Popen(command), f"https://localhost:{port}"


def _prometheus(folder, service_port, key):
    """Start Prometheus by the file in `deploy/`, with the address of this machine."""
    port = free_port()
    shutil.copytree(DEPLOY / "prometheus", folder / "prometheus")
    (folder / "prometheus" / "onebit.key").write_text(key)
    file = folder / "prometheus" / "prometheus.yml"
    content = file.read_text().replace("service:8000", f"127.0.0.1:{service_port}")
    file.write_text(content.replace("scrape_interval: 15s", "scrape_interval: 1s"))
    process = subprocess.Popen(
        [
            "prometheus",
            f"--config.file={file}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=error",
        ]
    )
    url = f"http://127.0.0.1:{port}"
    _wait(lambda: httpx.get(f"{url}/-/ready").status_code == 200)
    return process, url


def _wait(is_so, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if is_so():
                return
        except (httpx.TransportError, KeyError):
            pass
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")
