"""Schemathesis over the OpenAPI description of the decision service.

    python bench/serve_schema.py [--examples 100] [--workers 1]

Every answer must be one that the description has, and none 5xx. Not asked are: whether all that
the schema allows is accepted, for a schema cannot say that a label is one of a model's; and the
import of logs, as Schemathesis writes no lines of JSON.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from serve_drill import Service, storage


def main() -> None:
    """Serve a model, and let Schemathesis ask."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1, help="processes; several use PostgreSQL")
    parser.add_argument("--port", type=int, default=8771)
    options = parser.parse_args()
    with storage(options.workers) as where:
        sys.exit(run_schemathesis(where, options))


def run_schemathesis(where: list[str], options: argparse.Namespace) -> int:
    """Serve a model, and run Schemathesis; return its exit code, or that of `onebit log verify`."""
    service = Service(options.port, [*where, "--workers", str(options.workers)])
    service.start()
    try:
        body = {"name": "m", "labels": ["a", "b", "c"], "n_features": 1024}
        httpx.post(f"{service.url}/v1/models", json=body, timeout=120).raise_for_status()
        command = [str(Path(sys.executable).with_name("schemathesis")), "run"]
        command += [f"{service.url}/openapi.json", "--max-examples", str(options.examples)]
        command += ["--exclude-operation-id", "import_log", "--continue-on-failure"]
        command += ["--exclude-checks", "positive_data_acceptance"]
        command += ["--request-timeout", "120"]  # for some models, a learner is compiled first
        code = subprocess.run(command).returncode
        service.stop(signal.SIGTERM)
        verify = [sys.executable, "-m", "onebit", "log", "verify", *where]
        return code or subprocess.run(verify).returncode
    finally:
        service.stop(signal.SIGTERM)  # which ends its workers, too


if __name__ == "__main__":
    main()
