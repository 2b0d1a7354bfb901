"""Labels that say what they mean: made, added and described, and replayed from the log."""

import asyncio
import json

import numpy as np
import pytest

import onebit
from onebit.evaluation import Log
from onebit.serve.sqlite_log import SQLiteLog
from onebit.serve.verify import verify
from onebit.serve.views import LONGEST_SHOWN
from services import TICKETS, in_folder

DESCRIBED = [{"name": name, "description": text} for name, text in TICKETS.items()]
LABELS = "/v1/models/m/labels"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with in_folder(tmp_path_factory.mktemp("data")) as service:
        yield service


def shown(service, name="m"):
    found = service.ask("GET", f"/v1/models/{name}")["labels"]
    return {label["label"]: label["description"] for label in found}


def imported(service, name, content):
    headers = {"content-type": "application/x-ndjson"}
    reply = service.send("PUT", f"/v1/models/{name}/log", content=content, headers=headers)
    assert reply.status_code == 200, reply.text


def faults(folder):
    async def work():
        log = SQLiteLog(folder, alone=False, make=False)
        await log.open()
        try:
            return [(await verify(log, key)).faults for key in (await log.models()).values()]
        finally:
            await log.close()

    return asyncio.run(work())


def test_what_labels_mean_is_known_without_feedback(service, tmp_path):
    service.make("known", DESCRIBED)
    service.make("unknown")
    path = tmp_path / "known.safetensors"
    path.write_bytes(service.send("GET", "/v1/models/known/learner").content)
    router = onebit.load(path)
    texts = [f"my {text}" for text in TICKETS.values()]
    assert router.predict(texts).tolist() == list(TICKETS)
    policy = router.policy(texts)
    many = [{"record": text} for text in texts]
    for answer, p in zip(service.ask("POST", "/v1/models/known/decide", many), policy, strict=True):
        assert answer["probability"] == p[router.classes_.tolist().index(answer["label"])]
    for answer in service.ask("POST", "/v1/models/unknown/decide", many):
        assert answer["probability"] == pytest.approx(1 / 3, abs=0.05)
    assert shown(service, "known") == TICKETS
    assert shown(service, "unknown") == dict.fromkeys(TICKETS)
    report = service.ask("GET", "/v1/models/known/report")
    assert {one["label"]: one["description"] for one in report["labels"]} == TICKETS


def test_the_same_model_comes_from_the_same_log(tmp_path):
    """With labels added and described on the way, and shadows before and after a restart."""
    with in_folder(tmp_path) as service:
        service.make(labels=["billing", *DESCRIBED[1:]])
        service.ask("POST", "/v1/models/m/shadows", {"name": "without", "learner": "Banditron"})
        service.rounds(4)
        fax = {"name": "fax", "description": {"b": "machine", "a": ["paper", 1.5]}}
        service.ask("POST", LABELS, {"add": [fax, "telex"], "retire": ["login"]})
        service.ask("POST", LABELS, {"describe": DESCRIBED[:1]})
        service.rounds(4)
    with in_folder(tmp_path) as service:
        assert shown(service)["fax"] == '{"b":"machine","a":["paper",1.5]}'
        service.ask("POST", "/v1/models/m/shadows", {"name": "with"})
        service.ask("POST", LABELS, {"describe": [{"name": "fax", "description": "paper"}]})
        service.rounds(4)
        lines = service.send("GET", "/v1/models/m/log").content
        imported(service, "copy", lines)
        assert service.snapshot("copy") == service.snapshot()
        learners = service.model().learners
        assert learners["with"].learner.worth_ != (0.0, 0.0)
        assert shown(service)["fax"] == "paper"
        kinds = [mark["kind"] for mark in service.ask("GET", "/v1/models/m/report")["marks"]]
        assert kinds.count("labels described") == 2
    assert faults(tmp_path) == [[], []]
    file = tmp_path / "m.jsonl"
    file.write_bytes(lines)
    assert set(Log.read(file).classes.tolist()) == {*TICKETS, "fax", "telex"}
    assert json.loads(lines.splitlines()[0])["body"]["labels"] == ["billing", *DESCRIBED[1:]]


def test_a_model_that_is_made_again_with_its_descriptions_is_the_same(service):
    service.make("again", DESCRIBED)
    assert service.make("again", DESCRIBED)["rows"] == 1
    body = {"name": "again", "labels": list(TICKETS), "n_features": 1024, "seed": 7}
    service.ask("POST", "/v1/models", body, 409)


def test_numbers_are_described_by_numbers(service):
    labels = [{"name": 1, "description": [1.0, 0.0]}, {"name": 2, "description": [0, 1]}]
    service.make("numbers", labels, input="numbers", n_features=2)
    policy = service.model("numbers").learner.learner.policy(np.eye(2))
    assert policy.argmax(axis=1).tolist() == [0, 1]
    assert shown(service, "numbers") == {1: "[1.0,0.0]", 2: "[0,1]"}
    body = {"describe": [{"name": 1, "description": [1.0]}]}
    service.ask("POST", "/v1/models/numbers/labels", body, 422)


def test_what_cannot_be_described_changes_nothing(service):
    service.make("wrong", DESCRIBED)
    service.make("banditron", learner="Banditron")
    before = service.snapshot("wrong"), service.snapshot("banditron")
    described = {"describe": DESCRIBED[:1]}
    message = service.ask("POST", "/v1/models/banditron/labels", described, 422)["error"]
    assert message == "Banditron takes no descriptions of labels"
    body = {"name": "none", "labels": DESCRIBED, "learner": "Banditron"}
    service.ask("POST", "/v1/models", body, 422)
    for wrong in (
        {"describe": [{"name": "fax", "description": "paper"}]},
        {"describe": [{"name": "login"}]},
        {"describe": ["login"]},
        {"describe": [{"name": "login", "description": 3}]},
        {"describe": [{"name": "login", "description": "x", "text": "y"}]},
        {"add": [{"name": "login", "description": "x"}]},
        {"add": [{"name": "fax", "description": [1, 2]}]},
        {"add": ["fax", {"name": "fax", "description": "paper"}]},
        {"retire": [{"name": "login"}]},
    ):
        service.ask("POST", "/v1/models/wrong/labels", wrong, 422)
    assert (service.snapshot("wrong"), service.snapshot("banditron")) == before
    service.ask("POST", "/v1/models", {"name": "none", "labels": [*DESCRIBED, "login"]}, 422)


def test_long_descriptions_are_shown_in_part(service):
    long = "word " * LONGEST_SHOWN
    service.make("long", [{"name": "a", "description": long}, "b"])
    assert shown(service, "long") == {"a": long[:LONGEST_SHOWN] + "…", "b": None}
