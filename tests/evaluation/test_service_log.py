"""Logs that the service exported, as decisions with their feedback."""

import json

import pytest

from onebit.evaluation import Log
from onebit.evaluation.service_log import decisions_in


def decision(name, label="a", **more):
    """Return a row about a decision."""
    body = {"label": label, "probability": 0.5, "record": {"x": 1.0}, **more}
    return {"kind": "decision", "id": name, "at": 1.5, "body": body}


def feedback(name, **body):
    """Return a row about its feedback."""
    return {"kind": "feedback", "id": name, "at": 2.5, "body": body}


MODEL = {"kind": "model", "id": None, "at": 0.0, "body": {"labels": ["a", "b"]}}


def found_in(*rows):
    """Return the lines and the decisions that rows after the first, about the model, make."""
    return list(decisions_in(enumerate([MODEL, *rows], start=1), "log.jsonl"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"correct": True}, {"correct": True}),
        ({"correct": False}, {"correct": False}),
        ({"truth": "b"}, {"truth": "b"}),
        ({"truth": None}, {"correct": False}),  # none of the labels
        ({"expired": "wrong"}, {"correct": False}),
        ({"expired": "nothing"}, {}),
        ({"withdrawn": True}, {}),
    ],
)
def test_feedback(body, said):
    [(line, found)] = found_in(decision("T1", confidence=0.75), feedback("T1", **body))
    assert line == 2
    assert found == {
        "id": "T1",
        "time": 1.5,
        "label": "a",
        "probability": 0.5,
        "confidence": 0.75,
        "among": ["a", "b"],
        "x": {"x": 1.0},
        **said,
    }


def test_decisions_come_in_the_order_of_their_feedback_and_others_at_the_end():
    found = found_in(
        decision("T1"),
        decision("T2"),
        decision("T3"),
        feedback("T3", correct=True),
        feedback("T1", correct=False),
        feedback("T9", correct=True),  # its decision is in an older log
        feedback("T1", correct=False),
    )
    assert [(line, one["id"], one.get("correct")) for line, one in found] == [
        (4, "T3", True),
        (2, "T1", False),
        (3, "T2", None),
    ]


def test_labels_on_offer_are_those_of_the_time_of_the_decision():
    def change(**body):
        return {"kind": "labels", "id": None, "at": 1.0, "body": body}

    found = found_in(
        decision("T1"),
        change(add=["c", "a"], retire=["b"]),
        decision("T2"),
        decision("T3", among=["a", "b"]),
        change(add=["b"]),
        decision("T4"),
        change(retire=["c"]),
        decision("T5"),
    )
    assert {one["id"]: one["among"] for _, one in found} == {
        "T1": ["a", "b"],
        "T2": ["a", "c"],
        "T3": ["a", "b"],
        "T4": ["a", "b", "c"],
        "T5": ["a", "b"],
    }


@pytest.mark.parametrize(
    "row",
    [{"kind": "decision", "id": "T1", "body": {}}, {"body": {}}, {"kind": "model", "body": None}],
)
def test_a_row_that_lacks_something_is_named(row):
    with pytest.raises(ValueError, match=r"log.jsonl:2: a row of a service's log has kind, id, at"):
        found_in(row)


def test_a_file_of_such_rows_is_a_log(tmp_path):
    path = tmp_path / "exported.jsonl"
    rows = [MODEL, decision("T1"), decision("T2", "b"), feedback("T2", truth="a")]
    path.write_text("".join(json.dumps({"n": n, **row}) + "\n" for n, row in enumerate(rows)))
    log = Log.read(path)
    assert list(log.ids) == ["T2", "T1"]
    assert log.correct[0] == 0.0
    assert log.has_feedback.tolist() == [True, False]
