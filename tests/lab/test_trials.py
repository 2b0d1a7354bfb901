"""Measurements that make their own data, and the choice of what is run."""

import os
from pathlib import Path

import numpy as np
import pytest

from onebit import Perceptron, lab
from onebit.lab.experiment import Experiment, Sweep
from onebit.lab.experiments import clicks, labels, logs
from onebit.lab.measures import Online
from onebit.lab.reports import chosen_sweeps
from onebit.lab.shared import Made
from onebit.lab.trials import Trial
from onebit.streams import StreamSpec


class Sum(Trial):
    def __init__(self, stream="a", n=1):
        self.stream = stream
        self.n = n

    def result(self, seed):
        return {"sum": self.n + seed}


def uniform(rounds, seed):
    rng = np.random.default_rng(seed)
    return rng.random((rounds, 2)), rng.integers(5, 8, size=rounds)


def test_a_sweep_of_trials_has_no_streams(tmp_path):
    table = lab.sweep({"sum": Sum()}, {"n": [1, 10]}, {}, 2, jobs=1, folder=tmp_path)
    assert table[["n", "seed", "sum"]].values.tolist() == [
        [1, 0, 1], [10, 0, 10], [1, 1, 2], [10, 1, 11],
    ]  # fmt: skip
    assert lab.results.read_table(tmp_path / "results.parquet").equals(table)
    with pytest.raises(ValueError, match="trials are played without streams"):
        lab.sweep({"sum": Sum()}, None, {"x": StreamSpec("synsep", 10)}, 1, jobs=1)
    with pytest.raises(ValueError, match="trials are played without streams"):
        lab.sweep({"learner": Perceptron()}, None, {}, 1, jobs=1)


def test_a_stream_may_be_made_for_each_seed(tmp_path):
    table = lab.sweep([Perceptron], None, {"u": Made(uniform, (200,))}, 2, jobs=2, folder=tmp_path)
    for seed, mistakes in zip(table.seed, table.mistakes, strict=True):
        X, y = uniform(200, seed)
        found = Online()(Perceptron(classes=range(3), random_state=seed), X, y - 5, 1)
        assert found["mistakes"] == mistakes
    assert not list((tmp_path).glob("streams/*"))


def test_streams_and_seeds_are_chosen_by_name():
    streams = {"a": StreamSpec("synsep", 10), "b": StreamSpec("synsep", 11)}
    sweeps = {
        "played": Sweep({"p": Perceptron()}, {}, streams, [0, 1, 2]),
        "named": Sweep({"s": Sum()}, {"stream": ["b", "c"]}, {}, [0, 1]),
        "others": Sweep({"s": Sum()}, {}, {}, [0]),
    }
    made = Experiment("made", "", "", [], lambda scale: sweeps, lambda tables, scale: [])
    assert chosen_sweeps(made, "small", None, []) == sweeps
    found = chosen_sweeps(made, "small", 2, ["b"])
    assert list(found) == ["played", "named"]
    assert found["played"].streams == {"b": streams["b"]}
    assert found["played"].seeds == [0, 1]
    assert found["named"].grid == {"stream": ["b"]}
    assert list(chosen_sweeps(made, "small", None, ["a"])) == ["played"]
    with pytest.raises(ValueError, match="made has no stream 'd': there are a, b, c"):
        chosen_sweeps(made, "small", None, ["d"])


# What single experiments measure


def test_labels_in_place_of_bits_help(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    y = (X @ rng.normal(size=(6, 12))).argmax(axis=1)
    y = np.unique(y, return_inverse=True)[1]

    def errors(measure):
        classes = range(y.max() + 1)
        made = [labels.OneBitClassifier(classes=classes, random_state=s) for s in range(3)]
        return np.mean([measure(learner, X, y, 1)["error"] for learner in made])

    assert errors(labels.WithTruths(0.5)) < errors(labels.WithTruths(0.0)) - 0.02
    assert errors(labels.WithTruths(0.0)) == pytest.approx(errors(Online()), abs=1e-12)
    assert errors(labels.Taught(5)) < errors(labels.Taught(0)) - 0.02


@pytest.mark.xdist_group("softmax_thompson")
def test_a_shop_where_several_articles_are_right_or_none():
    found = clicks.Clicks(player=clicks.LogisticThompson(), rounds=4_000).result(0)
    assert 0.45 < found["none"] < 0.53
    assert 0.12 < found["several"] < 0.18
    assert found["random"] < found["clicks"] < found["oracle"]
    assert found["fixed"] < found["oracle"]
    assert found["curve_clicks"][-1] == found["clicks"]
    assert found["claimed"] == sorted(found["claimed"])
    assert found["claimed_all"] == pytest.approx(found["right_all"], abs=0.02)
    assert (clicks.world_of(clicks.ONE_RIGHT, 0, 50).right.sum(axis=1) == 1).all()


@pytest.mark.xdist_group("softmax_thompson")
def test_what_is_told_of_a_wrong_label():
    def result(told):
        return clicks.Clicks(player=clicks.LogisticThompson(), rounds=300, told=told).result(0)

    assert result("correct=False")["curve_clicks"] != result("truth=NONE_OF_THESE")["curve_clicks"]


def test_learners_of_few_columns_see_a_constant_and_the_vectors_of_texts():
    rng = np.random.default_rng(0)
    texts = clicks.World(rng.normal(size=(9, 40)), np.ones((9, 2), bool), None, np.eye(9)[:, :3])
    assert clicks.Clicks(constant=True)._examples(texts).shape == (9, 4)
    assert clicks.Clicks(constant=False)._examples(texts).shape == (9, 3)
    assert clicks.Clicks()._examples(texts) is texts.X


DATA = Path(os.environ.get("ONEBIT_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.mark.skipif(not (DATA / clicks.FILES[clicks.JESTER]).is_file(), reason="no file of Jester")
def test_jokes_that_several_people_like(monkeypatch):
    monkeypatch.setenv("ONEBIT_DATA", str(DATA))
    found = clicks.jester(0)
    assert found.X.shape == (4_998, 92)
    assert found.right.shape == (4_998, 8)
    assert np.abs(found.X).max() < 10.0
    assert 0.2 < np.mean(found.right.sum(axis=1) == 0) < 0.3


def test_estimates_of_logs_hold_the_truth(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    y = (X @ rng.normal(size=(4, 3))).argmax(axis=1)
    monkeypatch.setattr(logs, "load", lambda name, order: (X, y))
    logs.written.cache_clear()
    held = logs.Held("made", "Perceptron").result(0)
    assert held["rounds"] == 600
    assert (held["dr holds"], held["ips holds"]) == (1.0, 1.0)
    widths = logs.Widths("made", "Perceptron").result(0)
    assert set(widths) == {"ips", "dr", "dr, weights of MRDR"}
    assert all(0 < width <= 1 for width in widths.values())
    found = logs.Uncovered("made", "OneBitClassifier", 0.0).result(0)
    assert found["low"] <= found["truth"] <= found["high"]
    logs.written.cache_clear()
