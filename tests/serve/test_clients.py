"""Clients in other languages, with their defaults: a decision and its feedback."""

import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from services import SMALL, TICKETS

HERE = Path(__file__).parent / "clients"

COMMANDS = {
    "node": ["node", HERE / "client.mjs"],
    "java": ["java", HERE / "Client.java"],
    "go": ["go", "run", HERE / "client.go"],
}


def run(command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def model(running):
    body = {"name": "clients", "labels": list(TICKETS)} | SMALL
    httpx.post(f"{running.url}/v1/models", json=body, timeout=60).raise_for_status()
    return f"{running.url}/v1/models/clients"


def is_learned(model, name):
    newest = httpx.get(f"{model}/decisions").json()[0]
    return (newest["id"], newest["correct"]) == (name, True)


# The compilers of Java and Go take longer than a test may.
@pytest.mark.parametrize(
    "name", ["node", *(pytest.param(name, marks=pytest.mark.slow) for name in ("java", "go"))]
)
def test_a_client_decides_and_gives_feedback(model, name):
    found, status = run([*COMMANDS[name], model]).split()
    assert (status, is_learned(model, found)) == ("accepted", True)


def test_curl_may_ask_for_http_2(model):
    def ask(verb, body):
        options = ["--silent", "--show-error", "--fail", "--http2"]
        headers = ["--header", "content-type: application/json"]
        data = ["--data", json.dumps(body)]
        return json.loads(run(["curl", *options, *headers, *data, f"{model}/{verb}"]))

    made = ask("decide", {"record": {"subject": "card charged twice"}})
    assert ask("feedback", {"id": made["id"], "correct": True})["status"] == "accepted"
    assert is_learned(model, made["id"])
