"""Logs: what play writes, what files keep, and what is refused, with the row."""

import json
from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from onebit import NONE_OF_THESE, Banditron, Decision, OneBitClassifier, play, streams
from onebit.evaluation import Log
from onebit.evaluation.log import join

COLUMNS = ("labels", "probabilities", "correct", "truth", "confidence", "least", "policy", "among")


@pytest.mark.parametrize("make", [Banditron, OneBitClassifier])
def test_play_logs_what_it_plays(make):
    X, y = streams.synnonsep(1000, seed=0)
    log, learner = Log(keeps_policy=True), make(random_state=0, classes=range(9))
    history = play(learner, [(X[:400], y[:400]), (X[400:], y[400:])], log=log)
    assert len(log) == 1000
    np.testing.assert_array_equal(log.correct == 0, history.mistakes)
    np.testing.assert_array_equal(log.truth, y)
    np.testing.assert_array_equal(log.x.toarray(), X.toarray())
    np.testing.assert_array_equal(log.policy[np.arange(1000), log.labels], log.probabilities)
    np.testing.assert_array_equal(log.policy.min(axis=1), log.least)
    np.testing.assert_allclose(log.policy.sum(axis=1), 1.0, atol=1e-12)
    again = make(random_state=0, classes=range(9))
    assert play(again, X, y).n_mistakes == history.n_mistakes
    one = make(random_state=0, classes=range(9))
    for i in range(20):  # one by one, the same decisions
        decision = one.decide(X[[i]])
        assert decision.label == log.labels[i]
        assert decision.probability == log.probabilities[i]
        if decision.confidence is not None:
            assert decision.confidence == pytest.approx(log.confidence[i], rel=1e-12)
        one.learn(decision, correct=decision.label == y[i])
    assert np.isnan(log.confidence).all() == (make is Banditron)


def test_labels_that_come_and_go():
    X, y = streams.synsep(300, seed=0)
    log, learner = Log(), Banditron(random_state=0, classes=range(9))
    play(learner, X[:100], y[:100], log=log)
    learner.add_classes([9])
    learner.retire_classes([0])
    play(learner, X[100:], y[100:], log=log)
    assert log.classes.tolist() == list(range(10))
    assert log.among[:100, :9].all()
    assert not log.among[100:, 0].any()
    assert not log.among[:100, 9].any()
    assert (log.labels[100:] != 0).all()


def example_log(kind, policy=True):
    rng = np.random.default_rng(0)
    n, classes = 30, ["7", "fraud", "sales"] if kind == "records" else [3, 5, 9]
    h = 0.7 * rng.dirichlet(np.ones(3), size=n) + 0.1
    at = (h.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=2)
    x = {
        "dense": rng.normal(size=(n, 4)),
        "sparse": sp.random_array((n, 9), density=0.3, format="csr", rng=rng),
        "records": [{"subject": f"ticket, {i}", "amount": i / 3, "tags": ["a"]} for i in range(n)],
    }[kind]
    correct = [None if i % 5 == 0 else bool(i % 2) for i in range(n)]
    return Log(
        [classes[k] for k in at],
        h[np.arange(n), at],
        correct,
        x=x,
        classes=classes,
        ids=[f"id-{i}" for i in range(n)],
        times=[f"2026-01-01T00:00:{i:02}" for i in range(n)],
        confidence=[None if i % 3 else 0.25 for i in range(n)],
        among=[None if i % 2 else classes for i in range(n)],
        policy=h if policy else None,
        least=None if policy else 0.1,
    )


def same_x(one, other):
    if isinstance(one, list):
        return one == other
    arrays = [x.toarray() if sp.issparse(x) else x for x in (one, other)]
    return sp.issparse(one) == sp.issparse(other) and np.array_equal(*arrays)


@pytest.mark.parametrize("kind", ["dense", "sparse", "records"])
@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "dsjson"])
def test_files_keep_a_log(tmp_path, kind, ending):
    log, path = example_log(kind), tmp_path / f"log.{ending}"
    log.write(path)
    back = Log.read(path)
    lost = ("confidence", "truth", "among") if ending == "dsjson" else ("among",)
    for name in COLUMNS:
        if name not in lost:
            np.testing.assert_array_equal(getattr(back, name), getattr(log, name), err_msg=name)
    assert back.on_offer.all()
    assert back.classes.tolist() == log.classes.tolist()
    assert (back.ids, back.times) == (log.ids, log.times)
    assert same_x(log.x, back.x)
    parts = list(Log.batches(path, 7))
    assert [len(part) for part in parts] == [7, 7, 7, 7, 2]
    joined = join(parts)
    np.testing.assert_array_equal(joined.labels, log.labels)
    assert same_x(log.x, joined.x)


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_files_without_all_probabilities(tmp_path, ending):
    log, path = example_log("dense", policy=False), tmp_path / f"log.{ending}"
    log.write(path)
    back = Log.read(path)
    assert back.policy is None
    np.testing.assert_array_equal(back.least, log.least)
    with pytest.raises(ValueError, match="dsjson has the probabilities of all labels"):
        log.write(tmp_path / "log.dsjson")


def test_vowpal_wabbit_s_own_lines(tmp_path):
    """As its service writes them: actions without names, a line that is no decision."""
    row = {
        "_label_cost": -1,
        "_label_probability": 0.8,
        "_label_Action": 2,
        "_labelIndex": 1,
        "o": [{"v": 1.0, "EventId": "e1"}],
        "Timestamp": "2026-01-01T00:00:00Z",
        "Version": "1",
        "EventId": "e1",
        "a": [2, 1, 3],
        "c": {"User": {"age": 30}, "_multi": [{"A": {"a": 1}}, {"A": {"b": 1}}, {"A": {"c": 1}}]},
        "p": [0.8, 0.1, 0.1],
        "VWState": {"m": "m"},
    }
    unsaid = row | {"EventId": "e2", "o": [], "_label_cost": 0, "_label_Action": 3}
    unsaid |= {"a": [3, 1, 2], "p": [0.5, 0.25, 0.25], "_label_probability": 0.5}
    path = tmp_path / "log.dsjson"
    lines = [json.dumps(one) for one in (row, unsaid, {"RewardValue": 1, "EventId": "e1"})]
    path.write_text("\n".join(lines))
    log = Log.read(path)
    assert log.classes.tolist() == [1, 2, 3]
    assert log.labels.tolist() == [1, 2]
    assert log.policy.tolist() == [[0.1, 0.8, 0.1], [0.25, 0.25, 0.5]]
    assert log.correct[0] == 1.0
    assert np.isnan(log.correct[1])
    assert log.x == [{"User": {"age": 30}}] * 2
    path.write_text(json.dumps(row | {"_label_cost": 0.3}))
    with pytest.raises(ValueError, match=r"log.dsjson:1: the cost is in \[-1, 0\]; got 0.3"):
        Log.read(path)
    path.write_text(json.dumps({k: v for k, v in row.items() if k != "p"}))
    with pytest.raises(ValueError, match=r"log.dsjson:1: a decision has a, p, c"):
        Log.read(path)


def dsjson(path, *rows):
    """Write decisions in the format of Vowpal Wabbit's decision service, with these fields."""
    row = {"a": [1, 2], "p": [0.75, 0.25], "c": {"_multi": [{}, {}]}}
    made = (row | {"EventId": str(i)} | more for i, more in enumerate(rows))
    path.write_text("".join(json.dumps(one) + "\n" for one in made))
    return path


def test_dsjson_without_a_cost_or_an_outcome_has_no_feedback(tmp_path):
    """It was read as wrong, which biased every estimate."""
    rows = [{}, {"o": []}, {"_label_cost": -1}, {"_label_cost": 0}, {"o": [{"v": 1.0}]}]
    log = Log.read(dsjson(tmp_path / "log.dsjson", *rows, {"o": [{"v": 0}]}))
    np.testing.assert_array_equal(log.correct, [np.nan, np.nan, 1, 0, 1, 0])
    path = dsjson(tmp_path / "two.dsjson", {"o": [{"v": 1}, {"v": 0}]})
    with pytest.raises(ValueError, match=r"two.dsjson:1"):
        Log.read(path)


def test_dsjson_of_which_decisions_were_left_out(tmp_path):
    """With one probability for all, the others are a fair sample; else they are not."""
    path = tmp_path / "log.dsjson"
    log = Log.read(
        dsjson(path, {"pdrop": 0.5, "_label_cost": -1}, {"pdrop": 0.5, "_label_cost": 0})
    )
    assert log.correct.tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match=r"log.dsjson:2: pdrop is 0.9, and 0 before"):
        Log.read(dsjson(path, {"_label_cost": -1}, {"pdrop": 0.9, "_label_cost": 0}))
    with pytest.raises(ValueError, match=r"log.dsjson:2: pdrop is 0.9, and 0 before"):
        list(Log.batches(dsjson(path, {}, {"pdrop": 0.9}), size=1))
    for pdrop in (1.0, -0.5):
        with pytest.raises(ValueError, match=r"log.dsjson:1: pdrop is a probability below 1"):
            Log.read(dsjson(path, {"pdrop": pdrop}))


def test_decisions_and_frames():
    learner = Banditron(classes=["a", "b"], random_state=0)
    decisions = [learner.decide([1.0, i]) for i in range(6)]
    truth = ["a", None, NONE_OF_THESE, "b", None, "a"]
    bits = [None, True, None, None, None, None]
    log = Log.from_decisions(decisions, correct=bits, truth=truth, classes=["a", "b"])
    expected = [float(d.label == t) for d, t in zip(decisions, truth, strict=True)]
    expected[1], expected[2], expected[4] = 1.0, 0.0, np.nan
    np.testing.assert_array_equal(log.correct, expected)
    assert log.x.shape == (6, 2)
    assert log.ids == [d.id for d in decisions]
    again = log.decision(3)
    assert isinstance(again, Decision)
    assert (again.label, again.probability, again.id) == (
        decisions[3].label,
        decisions[3].probability,
        decisions[3].id,
    )
    frame = pd.DataFrame(
        {"label": ["a", "b"], "probability": [0.5, 0.25], "correct": [True, None], "f": [1, 2.0]}
    )
    frame["truth"] = ["a", np.nan]
    log = Log.from_frame(frame, features=["f"], least=0.25)
    assert log.x.tolist() == [[1.0], [2.0]]
    assert log.least.tolist() == [0.25, 0.25]
    assert np.isnan(log.correct[1])
    with pytest.raises(ValueError, match="no column 'g'"):
        Log.from_frame(frame, features=["g"])
    with pytest.raises(ValueError, match="a log has a column 'probability'"):
        Log.from_frame(frame[["label"]])


def test_columns_of_texts_are_records():
    columns = {"subject": ["a b", "c"], "amount": [1.5, np.nan]}
    frame = pd.DataFrame({"label": ["a", "b"], "probability": 0.5, **columns})
    expected = [{"subject": "a b", "amount": 1.5}, {"subject": "c", "amount": np.nan}]
    made = [Log.from_frame(frame, features=["subject", "amount"])]
    made += [Log(["a", "b"], [0.5, 0.5], x=x) for x in (frame[[*columns]], np.array(expected))]
    made += [Log.from_frame(frame.assign(x=expected))]
    for log in made:
        assert repr(log.x) == repr(expected)
    assert Log(["a", "b"], [0.5, 0.5], x=np.array(["a b", "c"])).x == ["a b", "c"]
    numbers = Log(["a", "b"], [0.5, 0.5], x=frame[["amount"]].astype(object))
    assert numbers.x.shape == (2, 1)


GOOD = {"labels": ["a", "b", "a"], "probabilities": [0.5, 0.5, 1.0], "correct": [True, False, None]}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"probabilities": [0.5, 0.0, 1.0]}, r"row 1: a probability is in \(0, 1\]; got 0.0"),
        ({"probabilities": [0.5, 0.5, 1.2]}, r"row 2: a probability is in \(0, 1\]; got 1.2"),
        ({"probabilities": [0.5, np.nan, 1.0]}, "row 1: probability is missing"),
        ({"probabilities": [0.5, "x", 1.0]}, "row 1: probability is a number; got 'x'"),
        ({"probabilities": [0.5, 10**400, 1.0]}, "probability contains an integer too large"),
        ({"probabilities": np.ma.array([0.5] * 3, mask=[0, 1, 0])}, "row 1: probability is miss"),
        ({"probabilities": [0.5]}, "probability has one number for each of 3 rows"),
        ({"probabilities": None}, "the probability with which each label was chosen"),
        ({"labels": ["a", None, "a"]}, "row 1: label is missing"),
        ({"correct": [True, 2, None]}, "row 1: correct is True, False or None; got 2"),
        ({"correct": [1, 0.5, 0]}, "row 1: correct is one bit; got 0.5"),
        ({"correct": [[True], [False], [True]]}, "row 0: correct is True, False or None; got"),
        ({"correct": [True]}, "correct has one value for each of 3 rows"),
        ({"ids": ["x", "y", "x"]}, "row 2: the id 'x' is that of row 0 too"),
        ({"classes": ["a", "c"]}, "row 1: unknown label 'b': the classes are 'a', 'c'"),
        ({"classes": ["a", "b", "a"]}, "a list of different labels"),
        ({"truth": ["a", "b", "mauve"], "classes": ["a", "b"]}, "row 2: unknown label 'mauve'"),
        ({"truth": ["b", "a", None]}, "row 0: correct contradicts the truth"),
        ({"labels": ["a", 1, "a"]}, "labels are all of one kind"),
        ({"among": [["a"], ["a"], None]}, "row 1: the label is not among those on offer"),
        ({"confidence": [0.5, 1.5, None]}, r"row 1: a confidence is in \[0, 1\]"),
        ({"least": 0.7}, "row 0: the label had probability 0.5, and the least of all"),
        ({"policy": [[0.5, 0.6]] * 3}, "row 0: the probabilities of all labels do not sum to one"),
        ({"policy": [[0.5, 0.5]] * 3}, "row 2: the label had probability 1.0, and 0.5 in the"),
        ({"policy": [[1.0]] * 3}, "policy has 1 columns for 2 classes"),
        ({"x": [[1.0]]}, "x has one example for each of 3 rows"),
        ({"x": np.ma.array([[1.0]] * 3, mask=[[0], [1], [0]])}, "x is a masked array"),
        ({"labels": np.ma.array(["a", "b", "a"], mask=[0, 1, 0])}, "row 1: label is missing"),
    ],
)
def test_columns_are_checked(columns, words):
    Log(**GOOD)
    with pytest.raises(ValueError, match=words):
        Log(**GOOD | columns)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            "log.jsonl",
            '{"label": 1, "probability": 0.5}\n\n{"label": 2, "probability": 7}',
            ":3: a p",
        ),
        ("log.jsonl", '{"label": 1,', "log.jsonl:1: not JSON"),
        ("log.jsonl", "[1]", "log.jsonl:1: a row is a JSON object"),
        ("log.jsonl", '{"probability": 1}', "a log has a column 'label'"),
        ("log.csv", "label,probability\na,0.5\nb,half\n", "log.csv:3: probability is a number"),
        ("log.csv", "label,probability\na,0.5,1\n", "log.csv:2: a row has as many cells"),
        ("log.csv", "label,probability,correct\na,0.5,perhaps\n", "log.csv:2: correct is True"),
        ("log.parquet", "PAR1", "log.parquet: cannot be read as Parquet"),
        ("log.jsonl", "[" * 100_000, "log.jsonl:1: not JSON"),
        ("log.jsonl", '{"probability": 1}', "log.jsonl: a log has a column 'label'"),
        ("log.jsonl", '{"label": [1], "probability": 1}', "log.jsonl:1: a label is a text or"),
        ("log.jsonl", '{"label": 1e9, "truth": {}, "probability": 1}', ":1: a label is a text or"),
        ("log.jsonl", f'{{"label": {10**30}, "probability": 1}}', ":1: a label is a text or"),
        ("log.jsonl", '{"label": null, "probability": 1}', "log.jsonl:1: label is missing"),
        ("log.jsonl", '{"label": 1, "probability": null}', "log.jsonl:1: probability is missing"),
        ("log.jsonl", '{"label": "a", "probability": 1, "among": "ab"}', ":1: among is a list"),
        ("log.jsonl", '{"label": "a", "probability": 1, "among": [[]]}', ":1: a label is a text"),
        ("log.jsonl", '{"label": 1, "probability": 1, "x": ["a"]}', "log.jsonl:1: could not"),
        (
            "log.jsonl",
            '{"label": 1, "probability": 1, "x": [1]}\n{"label": 1, "probability": 1, "x": [1, 2]}',
            r"log.jsonl:2: x has the shape \(2,\), and before it \(1,\)",
        ),
        (
            "log.csv",
            "label,probability,label\na,1,b\n",
            "log.csv:1: 2 columns have the name 'label'",
        ),
        ("log.txt", "", r"the name of a log ends in .jsonl"),
    ],
)
def test_files_are_checked(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=words):
        Log.read(tmp_path / name)


def test_what_is_masked_is_missing():
    """It counted as the value under the mask."""
    mask, columns = [0, 1, 0], ([0, 1, 0], [0.5, 0.5, 1.0])
    log = Log(
        *columns,
        np.ma.array([1, 1, 0], mask=mask),
        confidence=np.ma.array([0.5, 0.5, 0.5], mask=mask),
        truth=np.ma.array([0, 1, 1], mask=mask),
    )
    expected = Log(
        *columns, [1, None, 0], confidence=[0.5, None, 0.5], truth=[0, None, 1], classes=[0, 1]
    )
    np.testing.assert_array_equal(log.correct, expected.correct)
    np.testing.assert_array_equal(log.confidence, expected.confidence)
    np.testing.assert_array_equal(log.truth, expected.truth)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"label": "\xe9", "probability": 1}')
    with pytest.raises(ValueError, match=r"log.jsonl: not UTF-8"):
        Log.read(path)


@pytest.mark.parametrize(
    ("column", "classes", "words"),
    [
        (pa.array([["a"], ["b"]]), None, "row 0: a label is a text or a number"),
        (pa.array([b"a", b"b"]), None, "row 0: a label is a text or a number"),
        (pa.array([None, 1]), None, "row 0: label is missing"),
        (
            pa.array([date(2020, 1, 1), date(2021, 1, 1)]),
            None,
            "row 0: a label is a text or a number",
        ),
        (pa.array(["a", "b"]), b"[", "its classes are not JSON"),
        (pa.array(["a", "b"]), b"3", "its classes are a list of labels; got 3"),
        (pa.array(["a", "b"]), b"[[]]", "a label is a text or a number"),
    ],
)
def test_parquet_of_others_is_checked(tmp_path, column, classes, words):
    path, metadata = tmp_path / "log.parquet", {b"onebit.classes": classes} if classes else None
    table = pa.table({"label": column, "probability": [1.0, 0.5]})
    pq.write_table(table.replace_schema_metadata(metadata), path)
    for read in (Log.read, lambda path: list(Log.batches(path))):
        with pytest.raises(ValueError, match=words):
            read(path)


def test_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "log.parquet"
    columns = [pa.array(["a"]), pa.array([1.0]), pa.array(["b"])]
    pq.write_table(pa.table(columns, names=["label", "probability", "label"]), path)
    with pytest.raises(ValueError, match=r"log.parquet: 2 columns have the name 'label'"):
        Log.read(path)


def test_an_empty_log():
    log = Log()
    assert (len(log), repr(log)) == (
        0,
        "Log(rows=0, classes=0, right=unknown, without feedback=0)",
    )
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = log.nothing_of_the_kind


def test_a_file_is_not_in_memory_when_it_is_read_in_batches(tmp_path):
    """PyArrow must not keep what was read; a file has groups of 65,536 rows."""
    n, path = 300_000, tmp_path / "log.parquet"
    x = np.random.default_rng(0).normal(size=(n, 10))
    Log(np.zeros(n, dtype=int), np.ones(n), np.ones(n), x=x, classes=[0, 1]).write(path)
    held = [pa.total_allocated_bytes() for _ in Log.batches(path, 20_000)]
    assert max(held) < path.stat().st_size / 2
