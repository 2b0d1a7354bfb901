"""The commands and the code in the docs of the service, run as they stand there."""

import json
import re
import signal
from pathlib import Path

import httpx
import pytest

from onebit import Client
from services import OwnProcess

DOCS = Path(__file__).parents[2] / "docs"
HOME = "http://127.0.0.1:8000"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CURL = re.compile(r"curl -s (-X POST )?(\S+)(.*?)(?=^curl|\Z)", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    process = OwnProcess("--data", str(tmp_path_factory.mktemp("data")))
    process.wait()
    yield process.url
    process.kill(signal.SIGTERM)


def blocks(page, kind):
    return [text for name, text in _BLOCK.findall((DOCS / page).read_text()) if name == kind]


def commands(page):
    """Return the requests of a page: the address and the body of each."""
    found = []
    for text in blocks(page, ""):
        for is_post, address, rest in _CURL.findall(text):
            body = re.search(r"-d '(.*)'", rest, re.DOTALL)
            assert body or is_post
            found.append((address, None if body is None else json.loads(body[1])))
    return found


def send(url, address, body):
    reply = httpx.post(address.replace(HOME, url), json=body, timeout=60)
    assert reply.is_success, reply.text
    return reply.json() if reply.content else None


def test_the_tutorial_of_the_service(url):
    (make, spec), (decide, question), (feedback, said) = commands("serve.md")
    send(url, make, spec)
    (example,) = [text for text in blocks("serve.md", "") if text.startswith('{"id"')]
    shown, made = json.loads(example), send(url, decide, question)
    assert made.keys() == shown.keys()
    assert made["label"] == shown["label"]
    assert made["confidence"] == pytest.approx(shown["confidence"], abs=0.1)
    assert said["id"] == shown["id"]
    assert send(url, feedback, said | {"id": made["id"]})["status"] == "accepted"
    python, apprentice = blocks("serve.md", "python")
    names = {}
    exec(python.replace(HOME, url), names)
    assert names["decision"].label in ("billing", "delivery")
    with Client(url, "apprentice") as router:
        names = {"router": router, "desks": ["a", "b"], "ticket": "card", "rule": lambda _: "b"}
        exec(apprentice, names)
        assert router.show()["right"] == 1


def test_the_requests_of_the_old_clients(url):
    make, rank, reward, activate = commands("recipes/personalizer.md")
    send(url, *make)
    found = send(url, *rank)
    assert found["rewardActionId"] in [one["id"] for one in rank[1]["actions"]]
    assert send(url, *reward) is None
    assert send(url, *activate) is None
    assert httpx.get(f"{url}/v1/models/news").json()["right"] == 1
