"""Why this label: the reasons of a model, as the library gives them for its learner."""

import math

import pytest

import onebit
from onebit.serve.limits import Limits
from onebit.serve.views import MOST_REASONS
from services import TICKETS, in_folder

EXPLAIN = "/v1/models/m/explain"


def test_reasons_are_those_of_the_learner(tmp_path):
    with in_folder(tmp_path) as service:
        labels = [{"name": name, "description": text} for name, text in TICKETS.items()]
        service.make(labels=labels)
        service.rounds(20)
        before, text = service.snapshot(), "password for my card, and again a parcel: " * 2
        found = service.ask("POST", EXPLAIN, {"record": text})
        path = tmp_path / "m.safetensors"
        path.write_bytes(service.send("GET", "/v1/models/m/learner").content)
        expected = onebit.load(path).explain(text)
        assert (found["label"], found["against"]) == (expected.label, expected.against)
        assert found["probabilities"] == pytest.approx(expected.probabilities)
        assert found["difference"] == pytest.approx(expected.difference)
        assert [one["text"] for one in found["reasons"]] == [
            one for one, _ in expected.shown(MOST_REASONS)
        ]
        amounts = [one["amount"] for one in found["reasons"]]
        assert math.fsum(amounts) == pytest.approx(found["difference"])
        other = service.ask(
            "POST", EXPLAIN, {"record": text, "label": "login", "against": "billing"}
        )
        back = service.ask(
            "POST", EXPLAIN, {"record": text, "label": "billing", "against": "login"}
        )
        assert other["difference"] == pytest.approx(-back["difference"])
        among = ["login", "billing"]
        only = service.ask("POST", EXPLAIN, {"record": text, "among": among})
        assert {only["label"], only["against"]} == set(among)
        assert service.snapshot() == before
        for wrong in (
            {},
            {"record": 3},
            {"record": text, "label": "none"},
            {"record": text, "label": "login", "against": "login"},
            {"record": text, "among": ["login"]},
        ):
            service.ask("POST", EXPLAIN, wrong, 422)


def test_learners_without_probabilities_and_numbers(tmp_path):
    with in_folder(tmp_path, Limits(features=3)) as service:
        service.make(labels="ab", learner="Banditron", input="numbers", n_features=3)
        made = service.ask("POST", "/v1/models/m/decide", {"record": [1.0, 0.0, 2.0]})
        service.ask("POST", "/v1/models/m/feedback", {"id": made["id"], "correct": True})
        found = service.ask("POST", EXPLAIN, {"record": [1.0, 0.0, 2.0]})
        assert found["probabilities"] is None
        assert {one["text"].split()[0] for one in found["reasons"]} <= {"x[0]", "x[2]"}
        service.make("records", "ab", learner="Banditron")
        many = {"record": "one two three four five"}
        service.ask("POST", "/v1/models/records/explain", many, 422)
