"""Measurements that make their own data, and the choice of what is run."""

import numpy as np
import pytest

from onebit import Perceptron, lab
from onebit.lab.experiment import Experiment, Sweep
from onebit.lab.experiments import clicks, labels, logs
from onebit.lab.measures import Online
from onebit.lab.reports import chosen_sweeps
from onebit.lab.shared import Made
from onebit.lab.trials import Trial
from onebit.streams import Asked


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
        lab.sweep({"sum": Sum()}, None, {"x": Asked("synsep", 10)}, 1, jobs=1)
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
    streams = {"a": Asked("synsep", 10), "b": Asked("synsep", 11)}
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


def test_a_visitor_who_clicks_nothing_is_no_proof_against_all_labels():
    found = {told: clicks.Shop(2_000, told).result(0)["clicks"] for told in clicks.UNCLICKED}
    assert found["correct=False"] > found["truth=NONE_OF_THESE"]


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
