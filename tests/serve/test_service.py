"""Models, decisions and feedback over HTTP, and the log behind them."""

import asyncio
import json
import os
import shutil
import sqlite3
import threading
import time
from collections import namedtuple

import httpx
import msgspec
import numpy as np
import pytest

import onebit
from onebit.cli import main
from onebit.core import storage
from onebit.evaluation import ConfidenceSequence, Log
from onebit.serve.api import DecisionRequest, Feedback, RefusedError
from onebit.serve.code import this_code
from onebit.serve.decisions import decide
from onebit.serve.estimates import accuracy
from onebit.serve.feedback import give_feedback
from onebit.serve.handlers import PAGE_FILES
from onebit.serve.limits import Limits
from onebit.serve.log import Entry, LogError
from onebit.serve.replayable import ReplayableLearner
from onebit.serve.replaying import restore
from onebit.serve.rows import LabelsBody, ModelSettings, ModelSpec, ShadowBody
from onebit.serve.sqlite_log import SQLiteLog
from onebit.serve.verify import verify
from onebit.serve.writer import PendingRow, Writer
from services import SMALL, TICKETS, in_folder
from walks import Walk


@pytest.fixture
def service(tmp_path):
    with in_folder(tmp_path) as service:
        yield service


def verdict(folder, name="m"):
    async def work():
        log = SQLiteLog(folder, alone=False, make=False)
        await log.open()
        try:
            return await verify(log, (await log.models())[name])
        finally:
            await log.close()

    return asyncio.run(work())


# Decisions and feedback


def test_a_model_learns_what_it_is_told(service):
    made = service.make()
    assert (made["name"], made["rows"], made["decisions"]) == ("m", 1, 0)
    service.rounds(60)
    seen = service.ask("GET", "/v1/models/m")
    assert (seen["decisions"], seen["right"] + seen["wrong"], seen["awaited"]) == (60, 60, 0)
    assert seen["rows"] == 121
    late = service.ask("POST", "/v1/models/m/decide", {"record": TICKETS["login"]})
    assert late["label"] == "login"
    assert sum(label["chosen"] for label in seen["labels"]) == 60
    low, high = seen["accuracy"]["low"], seen["accuracy"]["high"]
    assert 0 < low < seen["right"] / 60 < high <= 1


def test_a_decision_is_what_the_learner_decides(service, tmp_path):
    service.make()
    service.rounds(30)
    content = service.send("GET", "/v1/models/m/learner").content
    (tmp_path / "m.safetensors").write_bytes(content)
    router = onebit.load(tmp_path / "m.safetensors")
    many = [{"record": f"{text} {i}"} for i in range(100) for text in TICKETS.values()]
    answers = service.ask("POST", "/v1/models/m/decide", many)
    p = router.policy([question["record"] for question in many])
    labels = router.steps[-1][1].classes_.tolist()
    at = [labels.index(answer["label"]) for answer in answers]
    np.testing.assert_array_equal([a["probability"] for a in answers], p[np.arange(300), at])


def test_labels_are_drawn_with_their_probabilities(service):
    service.make(seed=None)
    many = [{"record": "anything"}] * 1000
    answers = [a for _ in range(3) for a in service.ask("POST", "/v1/models/m/decide", many)]
    for label in TICKETS:
        chosen = [answer for answer in answers if answer["label"] == label]
        expected = 3000 * chosen[0]["probability"]
        assert abs(len(chosen) - expected) < 5 * expected**0.5


def test_feedback_is_learned_once(service):
    service.make()
    made = service.ask("POST", "/v1/models/m/decide", {"record": "card"})
    path, name, label = "/v1/models/m/feedback", made["id"], made["label"]
    other = next(one for one in TICKETS if one != label)

    def heard(status, **said):
        return service.ask("POST", path, {"id": name} | said, status)["status"]

    assert heard(422) == "invalid"
    assert heard(422, correct=True, truth=label) == "invalid"
    assert heard(422, truth="fax") == "invalid"
    assert heard(404, correct=True, id="nobody") == "unknown"
    assert heard(200, correct=True) == "accepted"
    after = service.snapshot()
    assert heard(200, correct=True) == "repeated"
    assert heard(200, truth=label) == "repeated"
    assert heard(409, correct=False) == "contradiction"
    assert heard(409, truth=other) == "contradiction"
    assert heard(409, truth=None) == "contradiction"
    assert service.snapshot() == after


def test_feedback_for_many_says_what_became_of_each(service):
    service.make()
    answers = service.ask("POST", "/v1/models/m/decide", [{"record": "card"}] * 3)
    ids = [answer["id"] for answer in answers]
    said = [{"id": name, "correct": True} for name in (ids[0], ids[1], ids[0], "nobody")]
    said.append({"id": ids[1], "correct": False})
    heard = service.ask("POST", "/v1/models/m/feedback", said)
    assert [one["status"] for one in heard] == [
        *("accepted", "accepted", "repeated", "unknown", "contradiction")
    ]
    assert service.ask("GET", "/v1/models/m")["right"] == 2


def test_the_same_feedback_at_the_same_time_teaches_once(service):
    service.make()
    made = service.ask("POST", "/v1/models/m/decide", {"record": "card"})
    said = {"id": made["id"], "correct": True}

    async def together():
        path = "/v1/models/m/feedback"
        return await asyncio.gather(*(service._http.post(path, json=said) for _ in range(20)))

    statuses = sorted(reply.json()["status"] for reply in service.do(together()))
    assert statuses == ["accepted"] + ["repeated"] * 19
    assert service.ask("GET", "/v1/models/m")["right"] == 1


def test_a_question_asked_again_is_the_same_decision(service):
    service.make()
    question = {"record": {"subject": "card", "amount": 3}, "id": "T1"}

    async def together():
        path = "/v1/models/m/decide"
        return await asyncio.gather(*(service._http.post(path, json=question) for _ in range(10)))

    answers = {reply.text for reply in service.do(together())}
    assert len(answers) == 1
    service.ask("POST", "/v1/models/m/feedback", {"id": "T1", "correct": True})
    assert service.send("POST", "/v1/models/m/decide", question).text in answers
    service.ask("POST", "/v1/models/m/decide", question | {"record": "other"}, 409)
    label = json.loads(answers.pop())["label"]
    others = [other for other in TICKETS if other != label]
    service.ask("POST", "/v1/models/m/decide", question | {"among": others}, 409)
    service.ask("POST", "/v1/models/m/decide", question | {"among": [label, others[0]]})
    assert service.ask("GET", "/v1/models/m")["decisions"] == 1


def test_numbers_and_labels_that_are_numbers(service):
    service.make("n", [1, 2, 3], input="numbers", n_features=2)
    made = service.ask("POST", "/v1/models/n/decide", {"record": [0.5, 2], "among": [1, 3]})
    assert made["label"] in (1, 3)
    service.ask("POST", "/v1/models/n/feedback", {"id": made["id"], "truth": 3})
    for wrong in ([1], [1, 2, 3], ["a", 1], {"x": 1}, "text", [True, False], [1, None]):
        service.ask("POST", "/v1/models/n/decide", {"record": wrong}, 422)


def test_what_a_request_can_get_wrong(service):
    service.make()
    path = "/v1/models/m/decide"
    for body in (
        {},
        {"record": 3},
        {"record": "x", "more": 1},
        {"record": "x", "among": []},
        [],
        7,
    ):
        service.ask("POST", path, body, 422)
    for body in ({"record": "x", "among": ["fax"]}, {"record": "x", "id": ""}):
        service.ask("POST", path, body, 422)
    service.ask("POST", path, {"record": {"x": 1e31}}, 422)
    nested = b'{"record":' + b'{"a":' * 5000 + b"1" + b"}" * 5001
    for content in (
        b"",
        b"{",
        b"\xff",
        b'{"record": "\\ud800"}',
        nested,
        b'{"record":{"x":1e999}}',
    ):
        reply = service.send(
            "POST", path, content=content, headers={"content-type": "application/json"}
        )
        assert reply.status_code in (400, 422), content[:40]
        assert reply.json()["request_id"] == reply.headers["x-request-id"]
    assert service.send("POST", path, content=b"{}").status_code == 415
    assert service.send("PUT", path).headers["allow"] == "POST"
    service.ask("POST", "/v1/models/none/decide", {"record": "x"}, 404)
    service.ask("GET", "/v1/models/m/decisions?limit=0", None, 422)
    service.ask("GET", "/v2/models", None, 404)
    named = service.send("GET", "/health", headers={"x-request-id": "mine-1"})
    assert named.headers["x-request-id"] == "mine-1"
    assert service.ask("GET", "/v1/models/m")["rows"] == 1


@pytest.mark.parametrize(
    "spec",
    [
        {"labels": ["a"]},
        {"labels": ["a", "a"]},
        {"labels": ["a", 1]},
        {"labels": ["a", "b\x00"]},
        {"learner": "Perceptron"},
        {"learner": "os.system"},
        {"parameters": {"gamma": 1}},
        {"learner": "SOBA", "parameters": {"gamma": 2}},
        {"learner": "SOBA", "parameters": {"covariance": "full"}, "n_features": 4096},
        {"learner": "Gaptron", "parameters": {"feedback": "full"}},
        {"n_features": 1000},
        {"n_features": 2**24},
        {"input": "numbers", "n_features": None},
        {"name": "../m"},
        {"name": "a/b"},
        {"seed": -1},
        {"expiry_seconds": 0},
    ],
    ids=str,
)
def test_models_that_cannot_be(service, spec):
    body = {"name": "m", "labels": ["a", "b"]} | spec
    service.ask("POST", "/v1/models", body, 422)
    assert service.ask("GET", "/v1/models") == []


def test_a_model_may_have_as_many_labels_as_are_promised():
    labels = [f"label {i}" for i in range(Limits().labels)]
    for n, width in ((3, 2**16), (256, 2**16), (257, 2**15), (len(labels), 2**14)):
        spec = ModelSpec(labels=labels[:n], learner="Banditron", seed=0)
        assert ReplayableLearner.begin(spec, spec, spec.labels).learner.n_features_in_ == width


def test_records_are_written_as_they_were_learned_from(service):
    service.make()
    records = [
        {"x": 10**25},
        {"x": -0.0, "y": 1e-320},
        {"a b": "é\u2028", "": None},
        "\x00 text here",
    ]
    made = service.ask("POST", "/v1/models/m/decide", [{"record": one} for one in records])
    said = [{"id": one["id"], "correct": True} for one in made]
    service.ask("POST", "/v1/models/m/feedback", said)
    log = service.app.service
    key = log.live["m"].key
    assert service.do(restore(log.log, key))[0].snapshot() == service.snapshot()


def test_a_model_that_is_made_again_with_its_seed_is_the_same(service):
    spec = {"name": "a", "labels": ["x", "y"], **SMALL}
    service.ask("POST", "/v1/models", spec)
    service.ask("POST", "/v1/models/a/decide", {"record": "card"})
    assert service.ask("POST", "/v1/models", spec)["rows"] == 2
    others = [{"seed": 8}, {"labels": ["y", "x"]}, {"expiry_seconds": 1.0}, {"seed": None}]
    for other in others:
        service.ask("POST", "/v1/models", spec | other, 409)


def test_a_model_that_is_being_made_is_made_once(service, monkeypatch):
    """A client that got no answer in time asks again while the learner is still compiled."""
    begun, log = [], service.app.service.log
    add_model = log.add_model

    async def slow(*arguments):
        begun.append(arguments)
        await asyncio.sleep(0.1)
        return await add_model(*arguments)

    monkeypatch.setattr(log, "add_model", slow)
    body = {"name": "m", "labels": list(TICKETS)} | SMALL
    others = {"seed": 8}, {"labels": ["a", "b"]}

    async def many():
        asked = [body, body, *(body | other for other in others), body]
        tasks = [service._http.post("/v1/models", json=one) for one in asked]
        return [reply.status_code for reply in await asyncio.gather(*tasks)]

    assert service.do(many()) == [200, 200, 409, 409, 200]
    assert len(begun) == 1


def test_what_comes_too_late_for_a_model_is_refused(service):
    """Also if another one has its name by then: its decisions and feedback are others."""
    service.make()
    models, path = service.app.service, "/v1/models/m"
    old = models.live["m"]
    (name,) = service.rounds(1)
    awaited = service.ask("POST", f"{path}/decide", {"record": "card"})["id"]
    models.live.pop("m")
    service.do(models.log.remove_model(old.key))
    service.make()
    late = [
        decide(models, old, [DecisionRequest("card")]),
        decide(models, old, [DecisionRequest("card", "own")]),
        give_feedback(models, old, [Feedback(awaited, True)]),
        give_feedback(models, old, [Feedback(awaited, True), Feedback(name, True)]),
        models.change_settings(old, ModelSettings(frozen=True)),
        models.change_labels(old, LabelsBody(add=["fax"])),
    ]
    for work in late:
        with pytest.raises(RefusedError, match="was removed") as refused:
            service.do(work)
        assert refused.value.status == 404
    seen = service.ask("GET", path)
    assert (seen["rows"], seen["frozen"], len(seen["labels"])) == (1, False, 3)


def test_models_come_and_go(service):
    service.make("a")
    service.make("b")
    service.rounds(5, "a")
    service.ask("POST", "/v1/models", {"name": "a", "labels": ["x", "y"]}, 409)
    assert [model["name"] for model in service.ask("GET", "/v1/models")] == ["a", "b"]
    service.ask("DELETE", "/v1/models/a", status=204)
    service.ask("GET", "/v1/models/a", status=404)
    assert service.make("a")["rows"] == 1
    with sqlite3.connect(service.app.service.log.folder / "log.sqlite") as db:
        assert db.execute("SELECT count(*) FROM log").fetchone() == (2,)
    db.close()


def test_labels_come_and_go(service):
    service.make()
    service.rounds(10)
    seen = service.ask("POST", "/v1/models/m/labels", {"add": ["fax"], "retire": ["login"]})
    assert {label["label"]: label["retired"] for label in seen["labels"]} == {
        **dict.fromkeys(TICKETS, False),
        **{"fax": False, "login": True},
    }
    for wrong in ({"add": ["fax"]}, {"retire": ["login"]}, {"add": [1]}, {}, {"retire": ["none"]}):
        service.ask("POST", "/v1/models/m/labels", wrong, 422)
    answers = service.ask("POST", "/v1/models/m/decide", [{"record": "anything"}] * 50)
    assert {answer["label"] for answer in answers} == {"billing", "delivery", "fax"}
    question = {"record": "x", "among": ["login", "fax"]}
    service.ask("POST", "/v1/models/m/decide", question, 422)


def test_changes_that_exclude_one_another_are_made_one_by_one(service):
    service.make()
    changes = {"labels": {"add": ["fax"]}, "shadows": {"name": "s", "learner": "Banditron"}}

    async def together(verb, body):
        path = f"/v1/models/m/{verb}"
        return await asyncio.gather(*(service._http.post(path, json=body) for _ in range(4)))

    for verb, body in changes.items():
        statuses = sorted(reply.status_code for reply in service.do(together(verb, body)))
        assert statuses == [200, 422, 422, 422]
    service.rounds(5)
    assert service.ask("GET", "/v1/models/m")["rows"] == 1 + 2 + 10


def test_a_change_that_became_impossible_changes_nothing(tmp_path):
    """As of another process, which did not know yet what was changed before."""
    with in_folder(tmp_path) as service:
        service.make()
        models = service.app.service
        live = models.live["m"]
        service.ask("POST", "/v1/models/m/labels", {"add": ["fax"]})
        labels = LabelsBody(add=["telex"], retire=["none"])
        shadow = ShadowBody("promote", "none")
        before = service.snapshot()[1]
        for kind, body in (("labels", labels), ("shadow", shadow)):
            service.do(models._write(live, kind, body))
        assert service.snapshot()[1] == before
        service.rounds(5)
        assert service.ask("GET", "/v1/models/m")["rows"] == 1 + 1 + 2 + 10
    found = verdict(tmp_path)
    assert (found.faults, found.checked, found.rows) == ([], 5, found.equal[-1])


def test_a_frozen_model_does_not_learn(service):
    service.make()
    service.rounds(5)
    assert service.ask("PATCH", "/v1/models/m", {"frozen": True})["frozen"]
    before = service.snapshot()[1]
    service.rounds(5)
    assert service.snapshot()[1] == before
    assert service.ask("GET", "/v1/models/m")["decisions"] == 10
    service.ask("PATCH", "/v1/models/m", {"frozen": False})
    service.rounds(1)
    assert service.snapshot()[1] != before
    service.ask("PATCH", "/v1/models/m", {}, 422)


@pytest.mark.parametrize("counts_as", ["nothing", "wrong"])
def test_feedback_that_never_comes(service, counts_as):
    service.make(expiry_seconds=0.3, expired_counts_as=counts_as)
    made = service.ask("POST", "/v1/models/m/decide", [{"record": f"card {i}"} for i in range(5)])
    service.ask("POST", "/v1/models/m/feedback", {"id": made[0]["id"], "correct": True})
    before = service.snapshot()[1]
    for _ in range(200):
        seen = service.ask("GET", "/v1/models/m")
        if seen["expired"] == 4:
            break
        time.sleep(0.05)
    assert (seen["expired"], seen["awaited"], seen["right"]) == (4, 0, 1)
    assert seen["wrong"] == (4 if counts_as == "wrong" else 0)
    assert (service.snapshot()[1] == before) == (counts_as == "nothing")
    heard = service.ask(
        "POST", "/v1/models/m/feedback", {"id": made[1]["id"], "correct": True}, 410
    )
    assert heard["status"] == "expired"


def test_a_decision_that_comes_while_others_expire_expires_later(service):
    service.make(expiry_seconds=0.1)
    models, path = service.app.service, "/v1/models/m/decide"
    live, unanswered = models.live["m"], models.log.unanswered
    made = service.ask("POST", path, {"record": "card"})
    asked = []

    async def meanwhile(*arguments):
        rows = await unanswered(*arguments)
        if rows and not asked:
            asked.append(await service._http.post(path, json={"record": "parcel"}))
        return rows

    models.log.unanswered = meanwhile
    for _ in range(200):
        if (seen := service.ask("GET", "/v1/models/m"))["expired"] == 2:
            break
        time.sleep(0.05)
    assert (seen["expired"], seen["awaited"], live.expired_up_to) == (2, 0, live.model.n)
    for name in (made["id"], asked[0].json()["id"]):
        service.ask("POST", "/v1/models/m/feedback", {"id": name, "correct": True}, 410)


def test_requests_have_their_turn_while_a_long_log_is_swept(service, monkeypatch):
    """SQLite is read by the event loop: what only reads never lets go of it by itself."""
    monkeypatch.setattr("onebit.serve.expiry.ROWS_AT_ONCE", 1)
    service.make()
    service.rounds(50)
    models = service.app.service
    unanswered, turns, seen = models.log.unanswered, 0, []

    async def counted(*arguments):
        seen.append(turns)
        return await unanswered(*arguments)

    async def others():
        nonlocal turns
        while len(seen) < 50:
            turns += 1
            await asyncio.sleep(0)

    models.log.unanswered = counted
    service.ask("PATCH", "/v1/models/m", {"expiry_seconds": 1000})
    service.do(others())
    assert len(set(seen[1:50])) > 40


def test_limits(tmp_path):
    limits = Limits(body=2000, items=3, features=4, labels=3, models=1, in_flight=2)
    with in_folder(tmp_path, limits) as service:
        service.ask("POST", "/v1/models", {"name": "m", "labels": list("abcd")}, 422)
        service.make(labels="abc")
        service.ask("POST", "/v1/models", {"name": "n", "labels": ["a", "b"]}, 422)
        service.ask("POST", "/v1/models/m/labels", {"add": ["d"]}, 422)
        path = "/v1/models/m/decide"
        service.ask("POST", path, {"record": "x" * 2000}, 413)
        service.ask("POST", path, [{"record": "x"}] * 4, 422)
        service.ask("POST", path, {"record": "one two three four five"}, 422)

        async def together():
            question = {"record": "card"}
            return await asyncio.gather(*(service._http.post(path, json=question) for _ in "abcde"))

        statuses = sorted(reply.status_code for reply in service.do(together()))
        assert statuses == [200, 200, 429, 429, 429]


# The log


def test_the_model_is_determined_by_its_log(tmp_path, monkeypatch):
    monkeypatch.setattr("onebit.serve.applying.SNAPSHOT_ROWS", 40)
    monkeypatch.setattr("onebit.serve.model.MOST_AWAITED", 5)
    with in_folder(tmp_path) as service:
        service.make()
        service.ask("POST", "/v1/models/m/shadows", {"name": "s", "learner": "Banditron"})
        made = service.ask(
            "POST", "/v1/models/m/decide", [{"record": f"late {i}"} for i in "abcdefgh"]
        )
        service.rounds(30)
        service.ask("POST", "/v1/models/m/labels", {"add": ["fax"], "retire": ["login"]})
        service.ask("PATCH", "/v1/models/m", {"frozen": True})
        service.rounds(3)
        service.ask("PATCH", "/v1/models/m", {"frozen": False})
        said = [{"id": one["id"], "truth": "fax"} for one in made]
        service.ask("POST", "/v1/models/m/feedback", said)
        service.ask("POST", "/v1/models/m/shadows/s/promote")
        service.rounds(30)
        expected = service.snapshot()
    found = verdict(tmp_path)
    assert not found.faults
    assert found.rows == found.equal[-1] == msgspec.json.decode(expected[0])["n"]
    assert len(found.equal) == 3
    assert (found.checked, found.unchecked) == (71, 0)
    with in_folder(tmp_path) as service:
        assert service.snapshot() == expected
        service.rounds(3)
    for path in (tmp_path / "snapshots").iterdir():
        path.write_bytes(b"damaged" + path.read_bytes())
    with in_folder(tmp_path) as service:  # which replays from the first row
        assert service.model().n == found.rows + 6
        service.rounds(1)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE log SET body = '{\"correct\":true}' WHERE body = '{\"correct\":false}'",
        "UPDATE log SET body = json_set(body, '$.label', 'x') WHERE kind = 'decision' AND n > 20",
        "UPDATE snapshot SET meta = replace(meta, '\"frozen\":false', '\"frozen\":true')",
    ],
    ids=["feedback", "decision", "snapshot"],
)
def test_verify_notices_a_changed_log(tmp_path, change):
    with in_folder(tmp_path) as service:
        service.make(labels=[*TICKETS, "x", *map(str, range(30))])  # some are never chosen
        service.rounds(20)
    assert not verdict(tmp_path).faults
    with sqlite3.connect(tmp_path / "log.sqlite") as db:
        assert db.execute(change).rowcount
    db.close()
    assert verdict(tmp_path).faults


def test_export_and_import(service):
    service.make()
    service.rounds(12)
    service.ask("POST", "/v1/models/m/labels", {"add": ["fax"]})
    lines = service.send("GET", "/v1/models/m/log").content
    headers = {"content-type": "application/x-ndjson"}

    def imported(content, status, name="copy"):
        reply = service.send("PUT", f"/v1/models/{name}/log", content=content, headers=headers)
        assert reply.status_code == status, reply.text
        return reply.json()

    assert imported(lines, 200)["rows"] == 26
    assert service.snapshot("copy") == service.snapshot("m")
    again = service.send("GET", "/v1/models/copy/log").content
    assert again == lines
    imported(lines, 409)
    imported(lines, 422, "-")
    rows = [json.loads(line) for line in lines.splitlines()]
    wrong = {
        "nothing": [],
        "no model": rows[1:],
        "a gap": rows[:3] + rows[4:],
        "twice": [*rows[:3], rows[2] | {"n": 4}],
        "feedback without a decision": [rows[0], rows[2] | {"n": 2}],
        "a label that is none": [
            rows[0],
            rows[1] | {"body": rows[1]["body"] | {"label": "x"}},
            rows[2],
        ],
        "a probability that is none": [
            rows[0],
            rows[1] | {"body": rows[1]["body"] | {"probability": -1}},
            rows[2],
        ],
        "a kind that is none": [rows[0], rows[1] | {"kind": "other"}],
        "a label that is none, and nothing said of it": [
            rows[0],
            rows[1] | {"body": rows[1]["body"] | {"label": "x"}},
        ],
        "a record that is none, and nothing said of it": [
            rows[0],
            rows[1] | {"body": rows[1]["body"] | {"record": [1, 2]}},
        ],
        "feedback that says two things": [
            *rows[:2],
            rows[2] | {"body": {"correct": True, "truth": "login"}},
        ],
        "more labels than there may be": [
            rows[0],
            {
                "n": 2,
                "kind": "labels",
                "at": 0.0,
                "body": {"add": [f"label {i}" for i in range(998)]},
            },
        ],
    }
    for content in wrong.values():
        imported("\n".join(map(json.dumps, content)).encode(), 422, "wrong")
    imported(b"{", 422, "wrong")

    async def together():
        send = service._http.put
        path = "/v1/models/both/log"
        return await asyncio.gather(*(send(path, content=lines, headers=headers) for _ in "ab"))

    assert sorted(reply.status_code for reply in service.do(together())) == [200, 409]
    with sqlite3.connect(service.app.service.log.folder / "log.sqlite") as db:
        assert db.execute("SELECT count(*) FROM model").fetchone() == (3,)
        assert db.execute("SELECT count(DISTINCT model) FROM log").fetchone() == (3,)
    service.ask("DELETE", "/v1/models/both", status=204)
    assert [model["name"] for model in service.ask("GET", "/v1/models")] == ["copy", "m"]


def test_an_exported_log_is_a_log_to_evaluate(service, tmp_path):
    service.make(learner="Banditron", expiry_seconds=1000)
    service.rounds(12)
    path = "/v1/models/m"
    names = "abcd"
    many = [{"record": f"card {name}", "id": name} for name in names]
    made = service.ask("POST", f"{path}/decide", many)
    service.ask("POST", f"{path}/labels", {"add": ["fax"], "retire": ["login"]})
    service.ask("POST", f"{path}/decide", {"record": "parcel", "id": "late"})
    said = [{"id": "b", "truth": None}, {"id": "a", "truth": "billing"}]
    service.ask("POST", f"{path}/feedback", said)
    file = tmp_path / "exported.jsonl"
    file.write_bytes(service.send("GET", f"{path}/log").content)
    log = Log.read(file)
    seen = service.ask("GET", path)
    assert (
        (len(log), np.isnan(log.correct).sum()) == (seen["decisions"], seen["awaited"]) == (17, 3)
    )
    assert np.nansum(log.correct) == seen["right"]
    assert log.ids[12:] == ["b", "a", "c", "d", "late"]
    assert log.correct[12] == 0
    labels = log.classes.tolist()
    assert log.correct[13] == (made[0]["label"] == "billing")
    assert [labels[k] for k in np.flatnonzero(log.on_offer[0])] == sorted(TICKETS)
    offered = [labels[k] for k in np.flatnonzero(log.on_offer[-1])]
    assert offered == ["billing", "delivery", "fax"]
    assert log.probabilities[13] == made[0]["probability"]
    (batch,) = Log.batches(file)
    assert batch.ids == log.ids
    with pytest.raises(SystemExit) as end:
        main(["evaluate", str(file)])
    assert not end.value.code


def test_what_a_shadow_of_a_log_needs_is_compiled_in_a_thread(service, monkeypatch):
    """A log may come from another machine, or from a process that compiled it for itself."""
    service.make()
    service.ask("POST", "/v1/models/m/shadows", {"name": "s", "learner": "Banditron"})
    lines, begun = service.send("GET", "/v1/models/m/log").content, []
    monkeypatch.setattr(
        ReplayableLearner, "warm_up", lambda _: begun.append(threading.current_thread())
    )
    headers = {"content-type": "application/x-ndjson"}
    service.ask("PUT", "/v1/models/copy/log", content=lines, headers=headers)
    assert len(begun) == 2  # the learner that decides, and the shadow
    assert service._thread not in begun
    assert service.snapshot("copy") == service.snapshot("m")


def test_what_a_kill_left_of_an_import_is_removed(tmp_path):
    with in_folder(tmp_path) as service:
        service.make()
        log = service.app.service.log
        half = service.do(log.begin_import(("model", None, 0.0, "{}", this_code())))
        service.do(half.append([("decision", "a", 0.0, "{}", None)]))
        key = half.key
    with in_folder(tmp_path) as service:
        with sqlite3.connect(tmp_path / "log.sqlite") as db:
            for _ in range(200):
                (left,) = db.execute("SELECT count(*) FROM log WHERE model = ?", (key,)).fetchone()
                models = db.execute("SELECT name FROM model").fetchall()
                if not left and len(models) == 1:
                    break
                time.sleep(0.01)
        assert (left, models) == (0, [("m",)])
        service.rounds(1)


def test_entries_that_are_left_out_leave_no_gap(tmp_path):
    async def work():
        log = SQLiteLog(tmp_path)
        await log.open()
        key = await log.add_model("m", 0.0, "{}")
        one = Entry(key, "decision", "a", 0.0, "{}")
        removed = Entry(key + 1, "labels", None, 0.0, "{}")
        assert await log.append([one._replace(id=name) for name in "xyz"]) == [2, 3, 4]
        assert await log.append([one, one, removed, one._replace(kind="feedback")]) == [5, 0, 0, 6]
        assert await log.append([one, one._replace(id="b")]) == [0, 7]
        assert [row.n for row in await log.rows(key, 0, 10)] == list(range(1, 8))
        await log.close()

    asyncio.run(work())


def test_half_of_the_requests_are_written_while_the_others_are_answered():
    sizes = []

    class Slow:
        at_once, deadline = False, None

        async def append(self, entries):
            sizes.append(len(entries))
            await asyncio.sleep(0.001)
            return [1] * len(entries)

    async def work():
        writer = Writer(Slow(), lambda *_: None)
        writer.start()

        async def user():
            for _ in range(20):
                await writer.write(None, [PendingRow(Entry(1, "labels", None, 0.0, ""), None)])

        await asyncio.gather(*(user() for _ in range(8)))
        await writer.stop()

    asyncio.run(work())
    assert sum(sizes) == 160
    assert np.median(sizes) == 4


def test_a_folder_is_for_one_service(tmp_path):
    with in_folder(tmp_path), pytest.raises(LogError, match="another onebit serve"):
        in_folder(tmp_path).__enter__()


def test_what_is_not_written_did_not_happen(service, monkeypatch):
    monkeypatch.setattr("onebit.serve.readiness.CHECK_SECONDS", 0.0)
    monkeypatch.setattr("onebit.serve.readiness.FAILURE_SECONDS", 0.0)
    service.make()
    made = service.ask("POST", "/v1/models/m/decide", {"record": "card"})
    before = service.snapshot()
    log = service.app.service.log
    write = log._database.write

    class Full:
        """A connection to a disk that has no room."""

        in_transaction = True

        def execute(self, query, *values):
            if query == "COMMIT" or query.startswith("INSERT INTO log"):
                raise sqlite3.OperationalError("database or disk is full")
            return write.execute(query, *values)

        def __getattr__(self, name):
            return getattr(write, name)

    said = {"id": made["id"], "correct": True}
    log._database.write = Full()
    service.ask("POST", "/v1/models/m/decide", {"record": "card", "id": "T1"}, 503)
    service.ask("POST", "/v1/models/m/feedback", said, 503)
    service.ask("GET", "/ready", status=503)
    assert service.snapshot() == before
    log._database.write = write
    service.ask("GET", "/ready")
    assert service.ask("POST", "/v1/models/m/feedback", said)["status"] == "accepted"
    service.ask("POST", "/v1/models/m/decide", {"record": "card", "id": "T1"})
    assert service.ask("GET", "/v1/models/m")["rows"] == 4


def test_a_model_that_cannot_go_on_is_refused(tmp_path, monkeypatch):
    with in_folder(tmp_path) as service:
        service.make()
        service.make("other")
        service.rounds(5)
        monkeypatch.setattr(service.model().learner, "learn", lambda *_: 1 / 0)
        service.rounds(1)  # what is on disk is acknowledged
        for path, body in (("decide", {"record": "card"}), ("feedback", {"id": "x"})):
            service.ask("POST", f"/v1/models/m/{path}", body, 503)
        assert "logs: m" in service.ask("GET", "/ready", status=503)["error"]
        service.ask("POST", "/v1/models", {"name": "m", "labels": ["a", "b"]}, 409)
        service.rounds(3, "other")
    with in_folder(tmp_path) as service:  # which learns what it could not learn before
        service.ask("GET", "/ready")
        service.rounds(2)
    found = verdict(tmp_path)
    assert (found.faults, found.checked, found.rows) == ([], 8, found.equal[-1])


def test_a_log_that_cannot_be_read_keeps_other_models_from_nothing(tmp_path):
    with in_folder(tmp_path) as service:
        service.make()
        service.make("other")
        service.rounds(5)
    with sqlite3.connect(tmp_path / "log.sqlite") as db:
        db.execute("UPDATE log SET body = '{' WHERE model = 1 AND n = 4")
        db.execute("DELETE FROM snapshot")
    db.close()
    with in_folder(tmp_path) as service:
        service.rounds(3, "other")
        service.ask("POST", "/v1/models/m/decide", {"record": "card"}, 503)
        service.ask("GET", "/ready", status=503)
        service.ask("DELETE", "/v1/models/m", status=204)
        service.ask("GET", "/ready")
        service.make()
        service.rounds(3)


@pytest.mark.parametrize(
    "limit", ["max_page_count = 1", "query_only = 1"], ids=["full", "read-only"]
)
def test_a_disk_that_cannot_be_written(tmp_path, limit):
    with in_folder(tmp_path) as service:
        service.make()
        service.rounds(5)
        connection = service.app.service.log._database.write
        connection.execute(f"PRAGMA {limit}")
        statuses = [
            service.send("POST", "/v1/models/m/decide", {"record": "x " * 2000}).status_code
            for _ in range(20)
        ]
        assert set(statuses) <= {200, 503}
        assert statuses[-1] == 503
        connection.execute("PRAGMA max_page_count = 1000000")
        connection.execute("PRAGMA query_only = 0")
        service.rounds(5)
    found = verdict(tmp_path)
    assert not found.faults
    assert found.rows == 21 + statuses.count(200)


def test_the_same_learner_is_the_same_bytes():
    learner = onebit.SOBA(classes=[0, 1], random_state=0)
    learner.decide([1.0, 2.0])
    assert len({storage.to_bytes(learner) for _ in range(20)}) == 1


# Shadows


def test_a_shadow_learns_from_the_same_log(service):
    service.make()
    service.rounds(10)
    shadow = {"name": "s", "learner": "Banditron", "parameters": {"gamma": 0.1}}
    service.ask("POST", "/v1/models/m/shadows", shadow)
    service.ask("POST", "/v1/models/m/shadows", shadow, 422)
    service.rounds(100)
    (seen,) = service.ask("GET", "/v1/models/m")["shadows"]
    assert (seen["learner"], seen["since"]) == ("Banditron", 22)
    assert 0 <= seen["accuracy"]["low"] <= seen["accuracy"]["estimate"] <= seen["accuracy"]["high"]
    assert seen["live"]["low"] > 0.5
    student = service.model().learners["s"]
    assert service.ask("POST", "/v1/models/m/shadows/s/promote")["learner"] == "Banditron"
    assert service.model().learner is student
    service.rounds(5)
    (before,) = service.ask("GET", "/v1/models/m")["shadows"]
    assert (before["name"], before["learner"]) == ("previous", "OneBitClassifier")
    service.ask("DELETE", "/v1/models/m/shadows/previous", status=204)
    service.ask("DELETE", "/v1/models/m/shadows/previous", status=404)


def test_a_model_with_retired_labels_may_have_shadows(service):
    service.make(learner="Banditron")
    service.ask("POST", "/v1/models/m/labels", {"retire": list(TICKETS)[:2]})
    service.ask("POST", "/v1/models/m/shadows", {"name": "s", "learner": "Banditron"})
    service.rounds(2)


# Estimates


def test_feedback_for_a_decision_whose_labels_were_retired_since(service):
    service.make(labels="abcd")
    service.ask("POST", "/v1/models/m/shadows", {"name": "s", "learner": "Banditron"})
    made = service.ask("POST", "/v1/models/m/decide", [{"record": f"card {i}"} for i in range(20)])
    service.ask("POST", "/v1/models/m/labels", {"retire": ["a"]})  # from here on, some are on offer
    made += service.ask("POST", "/v1/models/m/decide", [{"record": f"card {i}"} for i in range(20)])
    service.ask("POST", "/v1/models/m/labels", {"retire": ["b"]})
    assert {one["label"] for one in made} == set("abcd")
    said = [{"id": one["id"], "correct": one["label"] in "ab"} for one in made]
    heard = service.ask("POST", "/v1/models/m/feedback", said)
    assert {one["status"] for one in heard} == {"accepted"}
    (shadow,) = service.ask("GET", "/v1/models/m")["shadows"]
    assert shadow["accuracy"]["estimate"] == 0.0  # it would choose neither of these


@pytest.mark.parametrize(
    ("seed", "n"), [(0, 150), *(pytest.param(k, 500, marks=pytest.mark.slow) for k in range(1, 20))]
)
def test_no_walk_through_the_requests_ends_a_model(tmp_path, monkeypatch, seed, n):
    monkeypatch.setattr("onebit.serve.expiry.EXPIRY_SECONDS", 0.02)
    monkeypatch.setattr("onebit.serve.applying.SNAPSHOT_ROWS", 100)
    with in_folder(tmp_path) as service:
        service.make(labels="abc")
        Walk([service], seed).go(n)
        service.ask("GET", "/ready")
        service.ask("PATCH", "/v1/models/m", {"expiry_seconds": None})
        end = time.monotonic() + 60
        while service.ask("GET", "/v1/models/m")["behind"]:  # it learns again what was revised
            assert time.monotonic() < end
            time.sleep(0.01)
        after = service.snapshot()
        # As if it were killed: no snapshot at the end.
        monkeypatch.setattr(service.app.service.applier, "snapshot", lambda _: asyncio.sleep(0))
    with in_folder(tmp_path) as service:
        assert service.snapshot() == after
    found = verdict(tmp_path)
    assert (found.faults, found.unchecked) == ([], 0)


def test_an_accuracy_from_sums_is_that_of_its_bits():
    bits = np.random.default_rng(0).random(300) < 0.7
    watched = ConfidenceSequence()
    watched.update(bits)
    found = accuracy(int(bits.sum()), int((~bits).sum()))
    assert (found.low, found.high) == pytest.approx(watched.interval, abs=1e-9)
    assert found.estimate == pytest.approx(watched.mean)
    assert accuracy(0, 0) is None


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path):
    with in_folder(tmp_path, Limits(seconds=0.2)) as service:
        service.make()

        async def slow():
            yield b'{"record":'
            await asyncio.sleep(30)

        headers = {"content-type": "application/json"}
        reply = service.send("POST", "/v1/models/m/decide", content=slow(), headers=headers)
        assert reply.status_code == 408

        async def drop_by_drop():
            for _ in range(100):
                yield b" "
                await asyncio.sleep(0.1)

        content = drop_by_drop()
        reply = service.send("POST", "/v1/models/m/decide", content=content, headers=headers)
        assert reply.status_code == 408


# What the service says of itself


def test_probes_are_answered_at_the_limit_of_requests(tmp_path):
    with in_folder(tmp_path, Limits(in_flight=1)) as service:
        service.make()
        service.app.in_flight = 5
        service.ask("GET", "/v1/models", status=429)
        service.ask("GET", "/health")
        service.ask("GET", "/ready")
        service.app.in_flight = 0


def test_readiness_is_looked_up_once_a_second(service, monkeypatch):
    checks, log = [], service.app.service.log
    check = log.check

    async def counted():
        checks.append(time.monotonic())
        await asyncio.sleep(0.01)
        await check()

    monkeypatch.setattr(log, "check", counted)

    async def many():
        sent = [service._http.get("/ready") for _ in range(50)]
        return {reply.status_code for reply in await asyncio.gather(*sent)}

    assert [service.do(many()) for _ in range(3)] == [{200}] * 3
    assert len(checks) == 1
    monkeypatch.setattr("onebit.serve.readiness.CHECK_SECONDS", 0.0)
    service.ask("GET", "/ready")
    assert len(checks) == 2


def test_a_full_disk_is_not_ready(service, monkeypatch):
    disk = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: disk(2**30, 2**30 - 2**20, 2**20))
    assert "disk is full" in service.ask("GET", "/ready", status=503)["error"]


@pytest.mark.parametrize("way", ["removed", "renamed", "replaced"])
def test_a_log_that_is_gone_acknowledges_nothing(tmp_path, monkeypatch, way):
    """Rows were written to a file without a name, and lost at the next start."""
    monkeypatch.setattr("onebit.serve.readiness.CHECK_SECONDS", 0.0)
    folder = tmp_path / "data"
    with in_folder(folder) as service:
        service.make(learner="Banditron")
        (first,) = service.rounds(1)
        if way == "removed":
            shutil.rmtree(folder)
        elif way == "renamed":
            folder.rename(tmp_path / "other")
        else:
            copied = shutil.copy(folder / "log.sqlite", tmp_path / "copy")
            os.replace(copied, folder / "log.sqlite")
        service.ask("POST", "/v1/models/m/decide", {"record": "card"}, 503)
        service.ask("POST", "/v1/models/m/revise", {"id": first, "withdrawn": True}, 503)
        service.ask("POST", "/v1/models/m/erase", {"ids": [first]}, 503)
        service.ask("POST", "/v1/models", {"name": "n", "labels": ["a", "b"]} | SMALL, 503)
        assert service.ask("GET", "/health") == {"status": "ok"}
        service.app.service.writer.failed_at = None
        assert "restart the service" in service.ask("GET", "/ready", None, 503)["error"]


def test_a_log_that_does_not_answer_is_not_ready(service, monkeypatch):
    monkeypatch.setattr("onebit.serve.readiness.WAIT_SECONDS", 0.05)
    service.make()
    log = service.app.service.log
    append, held = log.append, asyncio.Event()

    async def late(entries):
        await held.wait()
        return await append(entries)

    monkeypatch.setattr(log, "append", late)

    async def ask():
        asked = asyncio.ensure_future(
            service._http.post("/v1/models/m/decide", json={"record": "card"})
        )
        await asyncio.sleep(0.2)
        ready = await service._http.get("/ready")
        held.set()
        return ready, await asked

    ready, asked = service.do(ask())
    assert (ready.status_code, asked.status_code) == (503, 200)
    assert "waiting" in ready.json()["error"]
    service.ask("GET", "/ready")
    monkeypatch.setattr("onebit.serve.readiness.CHECK_SECONDS", 0.0)
    monkeypatch.setattr(log, "check", lambda: asyncio.sleep(30))
    assert "did not answer" in service.ask("GET", "/ready", status=503)["error"]


def test_head_is_get_without_its_body(service):
    service.make()
    for path in ("/", "/health", "/v1/models/m", "/v1/models/m/log", "/openapi.json"):
        got, head = (service.send(method, path) for method in ("GET", "HEAD"))
        assert (head.status_code, head.content) == (200, b"")
        for name in ("content-type", "content-length"):
            assert head.headers.get(name) == got.headers.get(name)
    assert service.send("HEAD", "/v1/models/none").status_code == 404
    refused = service.send("HEAD", "/v1/models/m/decide")
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert service.send("PUT", "/health").headers["allow"] == "GET, HEAD"


def test_others_on_the_machine_cannot_read_the_log(tmp_path):
    for _ in range(2):
        with in_folder(tmp_path / "data") as service:
            service.make(learner="Banditron")
            service.ask("GET", "/ready")
            modes = {
                str(path.relative_to(tmp_path)): path.stat().st_mode & 0o007
                for path in (tmp_path / "data").iterdir()
            }
        assert {"data/log.sqlite", "data/log.sqlite-wal", "data/snapshots"} <= modes.keys()
        assert not any(modes[name] for name in modes if name != "data/lock")
        (tmp_path / "data" / "log.sqlite").chmod(0o644)  # as earlier versions made it


def test_openapi_describes_every_path(service):
    described = service.ask("GET", "/openapi.json")
    paths = described["paths"]
    assert "post" in paths["/v1/models/{model}/decide"]
    names = described["components"]["schemas"]
    for reference in set(
        httpx.Response(200, json=described).text.split('"#/components/schemas/')[1:]
    ):
        assert reference.partition('"')[0] in names


def test_the_page_needs_nothing_from_elsewhere(service):
    page = service.send("GET", "/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for path in PAGE_FILES:
        text = service.send("GET", path).text.replace("http://www.w3.org/2000/svg", "")
        assert "http" not in text.lower().replace("https", "http").replace("sw-http", "")
