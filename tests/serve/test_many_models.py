"""Many models: read on demand, and packed while nobody uses them."""

import asyncio
import sqlite3
import time

import numpy as np
import pytest

from onebit.serve.api import DecisionRequest, Feedback
from onebit.serve.decisions import decide
from onebit.serve.feedback import give_feedback
from onebit.serve.limits import Limits
from onebit.serve.model import Model
from onebit.serve.packing import packed, unpacked
from onebit.serve.replayable import ReplayableLearner
from onebit.serve.replaying import restore
from onebit.serve.rows import ModelSpec
from services import SMALL, TICKETS, in_folder

WIDE = {"learner": "Banditron", "n_features": 2**14}
"""A model of which little is touched."""


def pack(service, name="m"):
    """Pack a model, as is done after a minute without requests."""
    work = service.app.service
    assert service.do(work.memory.pack(work.live[name]))
    assert work.live[name].model.is_packed


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(10_000),
        np.full((1000, 7), 15.3),
        np.tile([0.0, 0.0, 0.0, 1.0], (5000, 1)),
        np.arange(5000),
        np.arange(5001, dtype=np.int32),
        np.random.default_rng(0).normal(size=(300, 10)),
        np.zeros((5000, 3), order="F") + np.arange(5000)[:, None],
        np.zeros(9999, bool),
        np.array([]),
        np.array(3.5),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_arrays_are_unpacked_as_they_were(array):
    for place in (None, 0, -1):
        found = array.copy(order="K")
        if place is not None and found.ndim and found.size:
            found.reshape(-1)[place] = 3
        again = unpacked(packed(found))
        np.testing.assert_array_equal(again, found)
        assert (again.dtype, again.flags.writeable) == (found.dtype, True)


def test_a_packed_learner_is_small_and_goes_on():
    spec = ModelSpec(labels=list("abc"), seed=7, **WIDE)
    learner = ReplayableLearner.begin(spec, spec, spec.labels)
    for i in range(20):
        decision = learner.decide(learner.example({"subject": f"card {i}"}), None, f"T{i}")
        learner.learn(decision, {"correct": i % 2 == 0}, i + 2)
    found = packed(learner)
    assert found.size * 20 < learner.size
    again = unpacked(found)
    assert again.to_bytes() == learner.to_bytes()
    decisions = [s.decide(s.example("card"), None, "T") for s in (learner, again)]
    assert decisions[0].label == decisions[1].label
    assert decisions[0].probability == decisions[1].probability


def test_a_model_that_was_packed_goes_on(tmp_path):
    with in_folder(tmp_path) as service:
        service.make("m", **WIDE)
        service.make("twin", **WIDE)
        late = {}
        for name in ("m", "twin"):
            question = {"record": "card charged", "id": "late"}
            late[name] = service.ask("POST", f"/v1/models/{name}/decide", question)
        assert late["m"] == late["twin"]
        for k in range(3):
            pack(service)
            shown = [service.ask("GET", "/v1/models")[i] for i in (0, 1)]
            assert shown[0] | {"name": "twin"} == shown[1]
            assert service.app.service.live["m"].model.is_packed  # the list needs no learners
            for name in ("m", "twin"):
                for i in range(3):
                    question = {"record": f"card {i}", "id": f"{k}-{i}"}
                    service.ask("POST", f"/v1/models/{name}/decide", question)
                    said = {"id": f"{k}-{i}", "correct": i > 0}
                    service.ask("POST", f"/v1/models/{name}/feedback", said)
        pack(service)
        for name in ("m", "twin"):  # also for a decision from before
            said = {"id": "late", "correct": True}
            assert service.ask("POST", f"/v1/models/{name}/feedback", said)["status"] == "accepted"
        assert service.snapshot("m")[1] == service.snapshot("twin")[1]
        service.ask("POST", "/v1/models/m/labels", {"add": ["fax"]})
        pack(service)
        labels = [one["label"] for one in service.ask("GET", "/v1/models/m")["labels"]]
        assert labels == [*TICKETS, "fax"]


def test_a_model_that_is_used_is_not_packed(tmp_path, monkeypatch):
    with in_folder(tmp_path) as service:
        service.make(**WIDE)
        work = service.app.service

        def slow(students):
            asyncio.run_coroutine_threadsafe(work.find("m"), service.loop).result(5)
            return packed(students)

        monkeypatch.setattr("onebit.serve.memory.packed", slow)
        assert not service.do(work.memory.pack(work.live["m"]))
        service.rounds(1)


def test_learners_are_packed_beyond_the_memory_for_them(tmp_path, monkeypatch):
    monkeypatch.setattr("onebit.serve.memory.PACK_SECONDS", 0.01)
    with in_folder(tmp_path, Limits(memory=1)) as service:
        names = ["a", "b", "c"]
        for name in names:
            service.make(name, **WIDE)
        models = service.app.service.live

        async def all_packed():
            while not all(live.model.is_packed for live in models.values()):
                await asyncio.sleep(0.01)

        service.do(asyncio.wait_for(all_packed(), 10))
        for name in names:
            service.rounds(2, name)
        service.do(asyncio.wait_for(all_packed(), 10))
        assert sum(live.model.size for live in models.values()) < 2**17


def test_models_are_read_when_they_are_asked_for(tmp_path, monkeypatch):
    names = [f"m{k}" for k in range(5)]
    with in_folder(tmp_path) as service:
        for name in names:
            service.make(name, learner="Banditron")
            service.rounds(2, name)
    monkeypatch.setattr(
        "onebit.serve.service.Service._read_in_background", lambda _: asyncio.sleep(0)
    )
    begun, restore = [], Model.restore
    monkeypatch.setattr(
        Model, "restore", lambda *arguments: begun.append(arguments) or restore(*arguments)
    )
    with in_folder(tmp_path) as service:
        work = service.app.service
        assert (sorted(work.unread), work.live, begun) == (names, {}, [])

        async def together():
            path = "/v1/models/m3/decide"
            sent = [service._http.post(path, json={"record": "card"}) for _ in range(5)]
            return [reply.status_code for reply in await asyncio.gather(*sent)]

        assert service.do(together()) == [200] * 5
        assert (list(work.live), len(begun)) == (["m3"], 1)
        body = {"name": "m1", "labels": list(TICKETS), **SMALL, "learner": "Banditron"}
        assert service.ask("POST", "/v1/models", body)["rows"] == 5
        service.ask("POST", "/v1/models", body | {"name": "m0", "seed": 9}, 409)
        service.ask("DELETE", "/v1/models/m4", status=204)
        # A list does not wait until all of them are read.
        shown = service.ask("GET", "/v1/models")
        assert [(one["name"], one["is_loaded"]) for one in shown] == [
            *(("m0", True), ("m1", True), ("m2", False), ("m3", True))
        ]
        assert (shown[1]["rows"], set(shown[2])) == (5, {"name", "is_loaded"})
        assert "onebit_models_unread 1.0" in service.send("GET", "/metrics").text
        assert list(work.unread) == ["m2"]


def test_all_models_are_read_in_the_background(tmp_path):
    with in_folder(tmp_path) as service:
        for k in range(4):
            service.make(f"m{k}", learner="Banditron")
    with in_folder(tmp_path) as service:
        work = service.app.service

        async def ask_while_they_are_read():
            for k in (3, 2):
                await work.find(f"m{k}")
            while work.unread:
                await asyncio.sleep(0.01)

        service.do(asyncio.wait_for(ask_while_they_are_read(), 10))
        assert sorted(work.live) == ["m0", "m1", "m2", "m3"]


def test_a_stop_makes_no_snapshots_of_short_logs(tmp_path, monkeypatch):
    monkeypatch.setattr("onebit.serve.applying.STOP_ROWS", 500)
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        service.rounds(5)
        service.make("long", learner="Banditron")
        service.ask("POST", "/v1/models/long/decide", [{"record": "card"}] * 500)
        expected = service.snapshot()
    with sqlite3.connect(tmp_path / "log.sqlite") as db:
        assert db.execute("SELECT n FROM snapshot").fetchall() == [(501,)]
    db.close()
    with in_folder(tmp_path) as service:
        assert service.snapshot() == expected


def test_work_on_a_large_model_holds_up_no_other(tmp_path, monkeypatch):
    with in_folder(tmp_path) as service:
        service.make("large", learner="Banditron")
        service.make("other", learner="Banditron")
        service.rounds(2, "large")
        copy = Model.copy

        def slow(model):
            time.sleep(0.3)
            return copy(model)

        monkeypatch.setattr(Model, "copy", slow)

        async def timed(method, path, **options):
            start = time.monotonic()
            reply = await service._http.request(method, path, **options)
            assert reply.status_code == 200, reply.text
            return time.monotonic() - start

        async def work():
            heavy = asyncio.gather(
                timed("POST", "/v1/models/large/labels", json={"retire": ["login"]}),
                timed("GET", "/v1/models/large/learner"),
                timed(
                    "POST", "/v1/models/large/shadows", json={"name": "s", "learner": "Banditron"}
                ),
            )
            await asyncio.sleep(0.05)
            own = asyncio.ensure_future(
                timed("POST", "/v1/models/large/decide", json={"record": "card"})
            )
            others = []
            while not heavy.done():
                took = await timed("POST", "/v1/models/other/decide", json={"record": "card"})
                others.append(took)
            await heavy
            return await own, others

        own, others = service.do(work())
        assert own > 0.2
        assert len(others) > 20
        # Each of the three would hold up one; a busy machine may do so once.
        assert sorted(others)[-2] < 0.2
        service.rounds(2, "large")
        expected = service.snapshot("large")
        log = service.app.service
        restored, _ = service.do(restore(log.log, log.live["large"].key))
        assert restored.snapshot()[1] == expected[1]


def test_rows_written_while_a_model_is_held_are_applied_after(tmp_path):
    with in_folder(tmp_path) as service:
        service.make(learner="Banditron")
        work = service.app.service

        async def scenario():
            live = await work.find("m")
            async with work.hold(live) as model:
                await decide(work, live, [DecisionRequest("card", "a")])
                await give_feedback(work, live, [Feedback("a", True)], look_up=True)
                assert (model.n, len(live.deferred)) == (1, 2)
            assert (model.n, live.deferred) == (3, [])
            return await give_feedback(work, live, [Feedback("a", True)])

        (heard,) = service.do(scenario())
        assert heard.status == "repeated"
        service.rounds(1)


def test_a_list_of_many_models_lets_others_have_their_turn(tmp_path, monkeypatch):
    """Intervals of a thousand models take as long as hundreds of decisions."""
    with in_folder(tmp_path) as service:
        for k in range(8):
            service.make(f"m{k}", learner="Banditron")

        turns, seen = [0], []

        def slow(right, wrong):
            time.sleep(0.001)
            seen.append(turns[0])

        monkeypatch.setattr("onebit.serve.views.accuracy", slow)

        async def list_them():
            listing = asyncio.ensure_future(service._http.get("/v1/models"))
            while not listing.done():
                turns[0] += 1
                await asyncio.sleep(0)
            return (await listing).json()

        assert len(service.do(list_them())) == 8
        assert len(set(seen)) == 8
