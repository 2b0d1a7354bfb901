"""Logs in many files: as one file, by one process or by many workers."""

import pickle
from itertools import product

import numpy as np
import pytest

from clusters import dask_cluster  # noqa: F401
from onebit import OneBitClassifier, play
from onebit.cli.evaluate import _reader
from onebit.evaluation import Log, estimate, estimate_parts
from onebit.evaluation import estimators as estimators_module
from onebit.evaluation.estimators import METHODS, Sums
from test_estimators import random_log


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A log in five files of different sizes, in which models stop learning early."""
    monkeypatch.setattr(estimators_module, "ENOUGH_ROWS", 500)
    log, *_ = random_log(3_000)
    log.correct[::7] = np.nan
    log.confidence = np.linspace(0.1, 0.9, 3_000)
    made = tmp_path / "log"
    made.mkdir()
    for i, (lo, hi) in enumerate(
        [(0, 400), (400, 1_000), (1_000, 1_010), (1_010, 2_500), (2_500, 3_000)]
    ):
        log[lo:hi].write(made / f"{i}.{'jsonl' if i % 2 else 'parquet'}")
    (made / "notes.txt").write_text("no part")
    return made


def learner_of(log):
    learner = OneBitClassifier(classes=range(4), random_state=0)
    play(learner, log.x[:300], log.labels[:300])
    return learner


def as_other_processes(function, parts):
    """Send everything to and fro as clusters do, and do the last part first."""
    sent = pickle.dumps(function)
    found = {part: pickle.loads(pickle.dumps(pickle.loads(sent)(part))) for part in parts[::-1]}
    return [found[part] for part in parts]


def assert_same(found, expected, tolerance):
    one, two = found.to_dict(), expected.to_dict()
    assert one.keys() == two.keys()
    for name, value in one.items():
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, part in items:
                assert part == pytest.approx(two[name][key], rel=tolerance), (name, key)
        elif isinstance(value, float):
            assert value == pytest.approx(two[name], rel=tolerance), name
        else:
            assert value == two[name], name


def usual(judged, method):
    """Return whether it is a daily test: what a learner chooses is the same for all methods."""
    return judged != "learner" or method in ("auto", "dr")


@pytest.mark.parametrize(
    ("judged", "method"),
    [
        pytest.param(*case, marks=[] if usual(*case) else [pytest.mark.slow])
        for case in product(("chosen", "label", "learner"), METHODS)
    ],
)
def test_parts_are_as_the_whole(folder, judged, method):
    log = Log.batches(folder)
    policy = {
        "chosen": None,
        "label": 2,
        "learner": learner_of(Log.read(folder / "3.jsonl")),
    }[judged]
    whole = estimate(log, policy, method)
    assert whole.rows == 3_000
    here = estimate_parts(folder, policy, method)
    there = estimate_parts(folder, policy, method, map_parts=as_other_processes)
    assert_same(here, whole, 1e-12)
    assert_same(there, here, 0)
    assert there.to_dict() == here.to_dict()


def test_parts_that_others_read_do_not_change_the_model(folder):
    sums = Sums(2, "dr")
    assert not sums.is_settled
    for log in Log.batches(folder / "0.parquet", classes=range(4)):
        sums.take(log)
    assert not sums.is_settled  # 400 rows, where a model learns from 500
    for log in Log.batches(folder / "1.jsonl", classes=range(4)):
        sums.take(log)
    assert sums.is_settled
    W = sums.model.W.copy()
    rest = sums.emptied()
    for log in Log.batches(folder / "3.jsonl", classes=range(4)):
        rest.take(log)
    np.testing.assert_array_equal(rest.model.W, W)
    assert (sums.rows, rest.rows, (sums + rest).rows) == (1_000, 1_490, 2_490)


@pytest.mark.parametrize(("method", "settled"), [("ips", True), ("clipped", True), ("dr", False)])
def test_only_models_need_the_first_rows(method, settled):
    assert Sums(2, method).is_settled == settled
    assert Sums(None, "dr").is_settled
    assert not Sums(2, "auto").is_settled


def test_labels_are_those_of_all_parts(tmp_path):
    for i, labels in enumerate((["b", "a"], ["c", "c"])):
        Log(labels, [0.5, 0.5], [1, 0]).write(tmp_path / f"{i}.csv")
    (log, _) = Log.batches(tmp_path)
    assert log.classes.tolist() == ["a", "b", "c"]
    assert estimate_parts(tmp_path, "c", "ips").values["ips"] == pytest.approx(0.5)
    Log([1, 2], [0.5, 0.5], [1, 0]).write(tmp_path / "2.csv")
    with pytest.raises(ValueError, match="labels are all of one kind"):
        estimate_parts(tmp_path)


def test_a_folder_without_parts_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("no part")
    with pytest.raises(ValueError, match=r"no file in this folder ends in \.jsonl"):
        estimate_parts(tmp_path)
    with pytest.raises(ValueError, match="method is one of"):
        estimate_parts(tmp_path, method="guess")
    with pytest.raises(ValueError, match="level is a number"):
        estimate_parts(tmp_path, level=95)


@pytest.mark.slow
def test_a_dask_cluster_estimates_the_same_though_a_worker_is_killed(folder, dask_cluster):  # noqa: F811
    address, workers = dask_cluster
    learner = learner_of(Log.read(folder / "3.jsonl"))
    here = estimate_parts(folder, learner)
    with _reader(address, hidden=True) as map_parts:
        assert estimate_parts(folder, learner, map_parts=map_parts).to_dict() == here.to_dict()

        def killing(function, parts):
            workers[0].kill()
            return map_parts(function, parts)

        assert estimate_parts(folder, learner, map_parts=killing).to_dict() == here.to_dict()
    assert workers[0].poll() is not None
