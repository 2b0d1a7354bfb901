"""Reports of models: what their logs say, and what to do about it."""

import time

import pytest

from prepared import DESKS, HOUR, SWAPPED_AT, prepared
from services import in_folder

LINES = {"content-type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with in_folder(tmp_path_factory.mktemp("data")) as found:
        for story, n in [("healthy", 1200), ("swapped", 1500), ("silent", 800), ("random", 400)]:
            reply = found.send(
                "PUT", f"/v1/models/{story}/log", content=prepared(story, n), headers=LINES
            )
            assert reply.status_code == 200, reply.text
        yield found


def report(service, name, query=""):
    return service.ask("GET", f"/v1/models/{name}/report{query}")


def kinds(found):
    return [(one["kind"], one.get("label"), one.get("action")) for one in found["findings"]]


def test_a_healthy_model_is_good(service):
    found = report(service, "healthy")
    expected = [("better_than_constant", None, None), ("exploration", None, None)]
    assert kinds(found) == expected
    explored = found["exploration"]
    assert explored["accuracy"]["high"] < 0.15
    assert explored["share"] == pytest.approx(0.05, abs=0.02)
    # One in twenty explores, and is wrong; all others are right.
    assert explored["cost"]["low"] < 0.05 < explored["cost"]["high"] < 0.1
    assert 1000 <= found["last"]["right"] + found["last"]["wrong"] <= 1200
    assert found["last"]["accuracy"]["low"] > 0.9
    assert found["last"]["constant"]["accuracy"]["high"] < 0.5
    assert found["last"]["chance"] == pytest.approx(0.25)
    bits = found["day"]["right"] + found["day"]["wrong"]
    assert 390 <= bits <= 440  # a third of 1,200, and a part of a segment
    assert found["marks"] == []
    assert {one["trend"] for one in found["labels"]} <= {"steady"}
    assert {one["answered"] for one in found["labels"]} == {1.0}


def test_swapped_labels_are_found(service):
    found = report(service, "swapped")
    falls = {one.get("label"): one for one in found["findings"] if one["kind"] == "fell"}
    assert set(falls) == {None, "delivery", "returns"}
    assert abs(falls[None]["since"] - (time.time() - SWAPPED_AT)) < HOUR
    assert falls["returns"]["before"]["estimate"] > 0.9 > 0.3 > falls["returns"]["now"]["estimate"]
    assert [falls[name].get("action") for name in (None, "returns")] == ["add_shadow", None]
    confused = {
        (one["label"], one["other"]) for one in found["findings"] if one["kind"] == "confused"
    }
    assert confused == {("delivery", "returns"), ("returns", "delivery")}
    by_name = {one["label"]: one for one in found["labels"]}
    assert [by_name[name]["trend"] for name in DESKS] == ["steady", "fell", "steady", "fell"]
    assert by_name["delivery"]["recent"]["estimate"] < 0.3  # since the change, not before
    (mark,) = found["marks"]
    assert mark["kind"] == "accuracy fell"
    assert mark["before"]["estimate"] > 0.9 > 0.6 > mark["after"]["estimate"]
    (changed,) = service.ask("GET", "/v1/models/swapped")["changes"]
    assert changed == mark["at"]


def test_a_label_without_feedback_is_found(service):
    found = report(service, "silent")
    assert kinds(found)[:2] == [
        ("label_without_feedback", "login", None),
        ("without_feedback", None, None),
    ]
    assert found["findings"][0]["share"] == 1.0
    assert found["findings"][0]["of_others"] == 0.0
    assert 0.2 < found["findings"][1]["share"] < 0.3
    by_name = {one["label"]: one for one in found["labels"]}
    assert (by_name["login"]["answered"], by_name["login"]["recent"]) == (0.0, None)


def test_a_better_shadow_may_be_promoted(service):
    found = report(service, "random")
    assert ("shadow_better", None, "promote") in kinds(found)
    (shadow,) = found["shadows"]
    difference = shadow["difference"]
    assert 0.0 < difference["low"] < difference["estimate"] < difference["high"]
    assert difference["estimate"] == pytest.approx(
        shadow["accuracy"]["estimate"] - shadow["live"]["estimate"], abs=0.15
    )


def test_a_range_of_time_is_reported(service):
    now = time.time()
    found = report(service, "swapped", f"?since={now - 6 * HOUR:.3f}")
    assert found["range"]["accuracy"]["high"] < 0.7
    before = report(service, "swapped", f"?until={now - 9 * HOUR:.3f}")
    assert before["range"]["accuracy"]["low"] > 0.9
    whole = report(service, "swapped")
    assert whole["range"]["right"] + whole["range"]["wrong"] == 1500
    assert sum(one["right"] + one["wrong"] for one in whole["series"]) == 1500
    for point in whole["series"]:
        assert point["right"] + point["wrong"] >= 30 or point is whole["series"][-1]
    nothing = report(service, "swapped", "?since=1&until=2")
    assert (nothing["range"]["accuracy"], nothing["series"]) == (None, [])
    for given in ("since=x", "until=-1", "since=1e9", "until=100000000001"):
        service.ask("GET", f"/v1/models/swapped/report?{given}", status=422)


def test_changes_leave_marks(tmp_path):
    with in_folder(tmp_path) as service:
        service.make(labels="abc", learner="Banditron", parameters={"gamma": 0.1})
        path = "/v1/models/m"
        found = report(service, "m")
        assert kinds(found) == [("no_feedback_yet", None, None)]
        service.ask("POST", f"{path}/labels", {"add": ["d"], "retire": ["a"]})
        service.ask("POST", f"{path}/shadows", {"name": "s", "learner": "Banditron"})
        for frozen in (True, True, False):
            service.ask("PATCH", path, {"frozen": frozen})
        service.ask("POST", f"{path}/shadows/s/promote")
        service.ask("DELETE", f"{path}/shadows/previous", status=204)
        found = report(service, "m")
        assert [(one["kind"], one["names"]) for one in found["marks"]] == [
            ("labels added", ["d"]),
            ("labels retired", ["a"]),
            ("shadow added", ["s"]),
            ("frozen", []),
            ("unfrozen", []),
            ("shadow promoted", ["s"]),
            ("shadow removed", ["previous"]),
        ]
        before = service.snapshot()
        log = service.send("GET", f"{path}/log").content
        service.send("PUT", "/v1/models/again/log", content=log, headers=LINES)
        assert service.snapshot("again") == before  # read from the log, marks are the same


def test_a_version_leaves_a_mark(tmp_path, monkeypatch):
    with in_folder(tmp_path) as service:
        service.make(labels="abc", learner="Banditron", parameters={"gamma": 0.1})
        service.rounds(5)
    for place in ("sqlite_log", "verify"):
        monkeypatch.setattr(f"onebit.serve.{place}.this_code", lambda: "onebit 9.9, abc")
    with in_folder(tmp_path) as service:
        start = time.time()
        service.rounds(5)
        (mark,) = report(service, "m")["marks"]
        assert (mark["kind"], mark["names"]) == ("version", ["onebit 9.9"])
        assert start <= mark["at"] <= time.time()


def test_a_useless_label_may_be_retired(tmp_path):
    with in_folder(tmp_path) as service:
        service.make(labels="abc", learner="Banditron", parameters={"gamma": 0.1})
        for i in range(120):
            made = service.ask("POST", "/v1/models/m/decide", {"record": "x", "among": ["c"]})
            said = {"id": made["id"], "correct": i % 40 == 0}
            service.ask("POST", "/v1/models/m/feedback", said)
        found = report(service, "m")
        assert found["last"]["chance"] == 1.0  # one label was on offer
        assert ("useless_label", "c", "retire") in kinds(found)
        service.ask("PATCH", "/v1/models/m", {"frozen": True})
        assert ("frozen", None, None) in kinds(report(service, "m"))
