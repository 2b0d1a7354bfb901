"""People change their minds: feedback that is revised or withdrawn."""

import asyncio
import json
import sqlite3
import threading

import msgspec
import numpy as np
import pytest

from onebit.evaluation import Log
from onebit.serve import restoring
from onebit.serve.amending import Amendment, is_current
from onebit.serve.verify import verify
from services import InProcess, in_folder

HEADERS = {"content-type": "application/x-ndjson"}
PATH = "/v1/models/m"


@pytest.fixture(scope="module")
def module_service(tmp_path_factory):
    with in_folder(tmp_path_factory.mktemp("revised")) as found:
        yield found


@pytest.fixture
def service(module_service):
    yield module_service
    for model in module_service.ask("GET", "/v1/models"):
        module_service.ask("DELETE", f"/v1/models/{model['name']}", status=204)


def settled(service: InProcess, name="m"):
    """Return a model once it has applied its whole log."""
    for _ in range(1000):
        live = service.live(name)
        if live.restoring is None and live.head == live.model.n:
            return live.model
        threading.Event().wait(0.01)
    raise AssertionError("the model stays behind")


def lines(service, name="m"):
    content = service.send("GET", f"/v1/models/{name}/log").content
    return [json.loads(line) for line in content.splitlines()]


def put(service, rows, status=200, name="copy"):
    content = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    reply = service.send("PUT", f"/v1/models/{name}/log", content=content, headers=HEADERS)
    assert reply.status_code == status, reply.text
    return reply.json()


def told_at_once(rows):
    """Return a log whose feedback is what it was revised to, and whose revisions do nothing."""
    words = {row["id"]: dict(row["body"]) for row in rows if row["kind"] == "revision"}
    for word in words.values():
        del word["since"]
        if word.pop("withdrawn", False):
            word["expired"] = "nothing"
    told = []
    for row in rows:
        if row["kind"] == "revision":
            row = {name: row[name] for name in ("n", "at")} | {"kind": "settings", "body": {}}
        elif row["kind"] == "feedback" and row["id"] in words:
            row = row | {"body": words[row["id"]]}
        told.append(row)
    return told


def meta_of(snapshot, *left_out):
    meta = msgspec.json.decode(snapshot[0])
    for name in left_out:
        meta.pop(name, meta["statistics"].pop(name, None))
    return meta


def verdict(service, name="m"):
    return service.do(verify(service.app.service.log, service.live(name).key))


WORDS = [
    *({"correct": True}, {"correct": False}, {"truth": "login"}, {"truth": None}),
    {"withdrawn": True},
]


def rounds(service, first, n):
    """Decide with ids that are the same each time, and give feedback; return the ids."""
    ids = [f"T{i}" for i in range(first, first + n)]
    for i, name in enumerate(ids):
        service.ask("POST", f"{PATH}/decide", {"record": f"card {i % 5} late", "id": name})
        service.ask("POST", f"{PATH}/feedback", {"id": name, "correct": i % 2 == 0})
    return ids


@pytest.mark.parametrize("learner", ["OneBitClassifier", "Banditron"])
@pytest.mark.parametrize("word", WORDS, ids=str)
def test_the_model_equals_to_the_byte_one_that_was_told_right_at_once(service, learner, word):
    service.make(learner=learner)
    ids = rounds(service, 0, 8)
    before = service.snapshot()
    name = ids[2 if word == {"correct": False} else 1]
    service.ask("POST", f"{PATH}/revise", {"id": name} | word)
    settled(service)
    revised = service.snapshot()
    assert revised[1] != before[1] or "truth" in word  # which may say the same as the bit
    # Rows up to here, without that of the revision: all that differs is the number of rows.
    told = told_at_once(lines(service))
    put(service, told[:-1], name="at-once")
    at_once = service.snapshot("at-once")
    assert revised[1] == at_once[1]
    left_out = ("n", "expired") if "withdrawn" in word else ("n",)
    assert meta_of(revised, *left_out) == meta_of(at_once, *left_out)
    # With rows that follow, also the number.
    rounds(service, 8, 4)
    put(service, told_at_once(lines(service)), name="later")
    later = service.snapshot("later")
    assert service.snapshot()[1] == later[1]
    assert meta_of(service.snapshot(), *left_out[1:]) == meta_of(later, *left_out[1:])
    assert not verdict(service).faults


def test_what_becomes_of_a_revision(service):
    service.make(learner="Banditron")
    asked = [{"record": "card", "id": name} for name in "abcd"]
    labels = [one["label"] for one in service.ask("POST", f"{PATH}/decide", asked)]
    service.ask("POST", f"{PATH}/feedback", [{"id": name, "correct": True} for name in "ab"])

    def revise(**said):
        return service.ask("POST", f"{PATH}/revise", [said])[0]["status"]

    assert revise(id="a", correct=True) == "repeated"
    assert revise(id="a", correct=False) == "accepted"
    assert revise(id="a", correct=False) == "repeated"
    assert revise(id="a", truth="login") == "accepted"
    assert revise(id="b", withdrawn=True) == "accepted"
    assert revise(id="b", withdrawn=True) == "repeated"
    assert revise(id="c", withdrawn=True) == "contradiction"
    assert revise(id="c", correct=True) == "accepted"  # the first
    assert revise(id="nobody", correct=True) == "unknown"
    assert revise(id="a", truth="none") == "invalid"
    assert revise(id="a") == "invalid"
    assert revise(id="a", correct=True, withdrawn=True) == "invalid"
    service.ask("POST", f"{PATH}/revise", {"id": "nobody", "correct": True}, 404)
    said = service.ask("POST", f"{PATH}/feedback", {"id": "b", "correct": True}, 409)
    assert "withdrawn" in said["message"]
    repeated = service.ask("POST", f"{PATH}/feedback", {"id": "a", "truth": "login"})
    assert repeated["status"] == "repeated"
    statistics = settled(service).meta.statistics
    rights = [labels[0] == "login", True]
    assert (statistics.right, statistics.wrong) == (sum(rights), 2 - sum(rights))
    assert (statistics.answered, statistics.awaited) == (3, 1)
    report = service.ask("GET", f"{PATH}/report")
    assert (report["model"]["right"], report["model"]["wrong"]) == (sum(rights), 2 - sum(rights))
    newest = {one["id"]: one for one in service.ask("GET", f"{PATH}/decisions")}
    assert (newest["a"]["truth"], newest["a"]["correct"]) == ("login", rights[0])
    assert "correct" not in newest["b"]
    assert [row["kind"] for row in lines(service)][5:] == [
        *("feedback", "feedback", "revision", "revision", "revision", "feedback")
    ]


def test_an_expired_decision_gets_its_feedback_late(service, monkeypatch):
    monkeypatch.setattr("onebit.serve.expiry.EXPIRY_SECONDS", 0.01)
    service.make(learner="Banditron", expiry_seconds=1e-6, expired_counts_as="wrong")
    made = service.ask("POST", f"{PATH}/decide", {"record": "card"})
    for _ in range(500):
        if service.model().meta.statistics.expired:
            break
        threading.Event().wait(0.01)
    service.ask("POST", f"{PATH}/revise", {"id": made["id"], "correct": True})
    statistics = settled(service).meta.statistics
    assert (statistics.right, statistics.wrong, statistics.expired) == (1, 0, 0)


@pytest.fixture
def slowly(monkeypatch):
    """Let models be restored only after an event."""
    allowed = threading.Event()

    async def restored(*given):
        await asyncio.to_thread(allowed.wait)
        return await restore(*given)

    restore = restoring.restore
    monkeypatch.setattr(restoring, "restore", restored)
    yield allowed
    allowed.set()


def test_changes_wait_for_a_model_that_is_being_restored(service, slowly):
    """It lacks the labels and shadows that were added since."""
    service.make(learner="OneBitClassifier")
    (name,) = service.rounds(1)
    service.ask("POST", f"{PATH}/revise", {"id": name, "truth": "login"})
    threading.Timer(0.5, slowly.set).start()
    service.ask("POST", f"{PATH}/labels", {"add": ["fax"]})
    service.ask("POST", f"{PATH}/labels", {"retire": ["fax"]})
    slowly.clear()
    service.ask("POST", f"{PATH}/revise", {"id": name, "truth": "billing"})
    threading.Timer(0.5, slowly.set).start()
    service.ask("POST", f"{PATH}/shadows", {"name": "s", "learner": "Banditron"})
    service.ask("POST", f"{PATH}/shadows/s/promote")
    assert settled(service).meta.decider.learner == "Banditron"


def test_changes_of_a_model_that_stays_behind_are_refused(service, slowly, monkeypatch):
    monkeypatch.setattr("onebit.serve.service.BEHIND_SECONDS", 0.1)
    service.make(learner="Banditron")
    (name,) = service.rounds(1)
    service.ask("POST", f"{PATH}/revise", {"id": name, "truth": "login"})
    service.ask("POST", f"{PATH}/labels", {"add": ["fax"]})
    service.ask("POST", f"{PATH}/labels", {"retire": ["fax"]}, 503)
    service.ask("POST", f"{PATH}/shadows/s/promote", status=503)
    slowly.set()
    settled(service)
    service.ask("POST", f"{PATH}/labels", {"retire": ["fax"]})
    service.ask("POST", f"{PATH}/shadows/s/promote", status=404)


def test_a_label_that_came_later_was_none_of_those_before(service):
    service.make(learner="OneBitClassifier")
    ids = service.rounds(3)
    service.ask("POST", f"{PATH}/labels", {"add": ["fax"]})
    service.ask("POST", f"{PATH}/revise", {"id": ids[0], "truth": "fax"})
    settled(service)
    told = told_at_once(lines(service))
    (feedback,) = [row for row in told if row["kind"] == "feedback" and row["id"] == ids[0]]
    feedback["body"]["truth"] = None
    put(service, told)
    assert service.snapshot()[1] == service.snapshot("copy")[1]


def test_until_it_is_restored_a_model_decides_as_before_and_is_behind(service, monkeypatch):
    service.make(learner="Banditron")
    ids = service.rounds(5)
    begun, release, restore = threading.Event(), threading.Event(), restoring.restore
    calls = []

    async def slowly(*arguments):
        calls.append(arguments)
        begun.set()
        while not release.is_set():
            await restoring.asyncio.sleep(0.001)
        return await restore(*arguments)

    monkeypatch.setattr(restoring, "restore", slowly)
    n, before = service.model().n, service.snapshot()
    service.ask("POST", f"{PATH}/revise", {"id": ids[0], "truth": "login"})
    assert begun.wait(10)
    more = service.rounds(3)
    service.ask("POST", f"{PATH}/revise", {"id": more[0], "withdrawn": True})
    service.ask("POST", f"{PATH}/labels", {"add": ["fax"]})
    assert service.snapshot() == before
    assert service.ask("GET", PATH)["behind"] == 9
    made = [row for row in lines(service) if row["kind"] == "decision" and row["id"] in more]
    seen = [row["body"]["seen"] for row in made]
    release.set()
    model = settled(service)
    assert seen == [n] * 3
    assert (model.n, len(calls)) == (n + 9, 1)
    assert "fax" in model.learner.labels
    put(service, told_at_once(lines(service)))
    assert service.snapshot()[1] == service.snapshot("copy")[1]
    found = verdict(service)
    assert (found.faults, found.checked, found.unchecked) == ([], 8, 0)


def test_snapshots_from_between_are_not_begun_with(tmp_path, monkeypatch):
    monkeypatch.setattr("onebit.serve.applying.SNAPSHOT_ROWS", 10)
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        ids = service.rounds(20)
        service.ask("POST", f"{PATH}/revise", [{"id": ids[-3], "truth": "login"}])
        settled(service)
        assert not verdict(service).faults
        service.ask("POST", f"{PATH}/revise", [{"id": ids[0], "withdrawn": True}])
        settled(service)
        service.rounds(3)
        service.ask("POST", f"{PATH}/revise", [{"id": ids[-3], "withdrawn": True}])
        settled(service)
        expected = service.snapshot()
        # As if it were killed: no snapshot at the end.
        monkeypatch.setattr("onebit.serve.applying.STOP_ROWS", 10**9)
    with in_folder(tmp_path) as service:
        assert service.snapshot() == expected
        found = verdict(service)
        assert (found.faults, found.checked) == ([], 23)
        put(service, lines(service))
        assert service.snapshot("copy") == expected
    with sqlite3.connect(tmp_path / "log.sqlite") as db:
        change = "UPDATE log SET body = replace(body, 'withdrawn', 'correct') WHERE n = 43"
        assert db.execute(change).rowcount
    db.close()
    with in_folder(tmp_path) as service:
        assert verdict(service).faults


def test_a_state_is_current_unless_a_later_row_changes_one_before_it():
    amendments = [Amendment(9, 5, "a", "{}"), Amendment(12, 11, None, "{}")]
    found = [n for n in range(1, 14) if is_current(n, amendments)]
    assert found == [1, 2, 3, 4, 9, 10, 12, 13]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"since": 2, "correct": True}, "where it is not"),
        ({"since": 4, "correct": True}, "no earlier one"),
        ({"since": 3}, "one of correct"),
        ({"since": 3, "truth": "none"}, "no label"),
        ({"correct": True}, "since"),
    ],
)
def test_revisions_that_cannot_be_imported(service, body, message):
    service.make(learner="Banditron")
    service.rounds(1)
    rows = lines(service)
    revision = {"n": 4, "kind": "revision", "at": 0.0, "id": rows[-1]["id"], "body": body}
    assert message in put(service, [*rows, revision], 422)["error"]


def test_the_last_revision_is_evaluated(service, tmp_path):
    service.make(learner="Banditron")
    ids = service.rounds(4)
    service.ask("POST", f"{PATH}/revise", {"id": ids[0], "correct": False})
    service.ask("POST", f"{PATH}/revise", {"id": ids[0], "correct": True})
    service.ask("POST", f"{PATH}/revise", {"id": ids[1], "withdrawn": True})
    service.ask("POST", f"{PATH}/revise", {"id": ids[2], "truth": None})
    settled(service)
    file = tmp_path / "exported.jsonl"
    file.write_bytes(service.send("GET", f"{PATH}/log").content)
    log = Log.read(file)
    assert log.ids == ids
    assert np.isnan(log.correct[1])
    assert (log.correct[0], log.correct[2]) == (1, 0)


def test_rows_are_found_by_their_indexes(tmp_path):
    """An index with a condition is used only by queries that have that condition."""
    log = in_folder(tmp_path)
    with log as service:
        service.make(learner="Banditron")
        ids = service.rounds(1)
        plans = []
        database = service.app.service.log._database
        read = database.read

        class Explained:
            def execute(self, query, values=()):
                plans.extend(read.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall())
                return read.execute(query, values)

        async def ask():
            found = service.app.service.log
            database.read = Explained()
            key = service.app.service.live["m"].key
            await found.find(key, ids)
            await found.unanswered(key, 0, 10)
            await found.amendments(key)
            database.read = read

        service.do(ask())
    used = " ".join(plan[-1] for plan in plans)
    assert "log_ids (model=? AND id=?)" in used
    assert "log_amendments (model=? AND id=?)" in used
    assert "log_ids (model=? AND id=? AND kind=?)" in used
    assert "log_amendments (model=?)" in used
    assert "PRIMARY KEY (model=?)" not in used
