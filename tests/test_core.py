import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from onebit import SOBA, Banditron, Decision, History, Perceptron, load, play
from onebit.core.example import INDEX, Example
from onebit.core.exploration import argmax, argmax_except, gamma_greedy, softmax
from onebit.core.generator import below, draw, new_generator, uniform
from onebit.core.linear import add_outer, length, new_scaled, project, weights
from onebit.core.second_order import PENDING, class_inverse, new_inverses, subtract, times


def numpy_generator(rng):
    bits = np.random.SFC64()
    state = bits.state
    state["state"]["state"] = rng.copy()
    bits.state = state
    return np.random.Generator(bits)


def test_generator_is_numpys():
    rng = new_generator(3)
    expected = numpy_generator(rng).random(1_000)
    np.testing.assert_array_equal([uniform(rng) for _ in range(1_000)], expected)


def test_generator_follows_random_state():
    np.testing.assert_array_equal(new_generator(5), new_generator(5))
    np.testing.assert_array_equal(
        new_generator(np.random.RandomState(5)), new_generator(np.random.RandomState(5))
    )
    assert not np.array_equal(new_generator(5), new_generator(6))
    assert not np.array_equal(new_generator(None), new_generator(None))


def test_draws_have_their_probabilities():
    rng = new_generator(0)
    p = np.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    counts = np.bincount([draw(rng, p) for _ in range(20_000)], minlength=6)
    assert (counts[p == 0] == 0).all()
    assert chisquare(counts[p > 0], 20_000 * p[p > 0]).pvalue > 1e-6
    counts = np.bincount([below(rng, 7) for _ in range(20_000)], minlength=7)
    assert chisquare(counts).pvalue > 1e-6


def test_draw_never_leaves_the_support():
    """Where probabilities sum to less than one by rounding, the last possible label is drawn."""
    rng = new_generator(0)
    p = np.array([0.0, 1e-9, 0.0])
    assert {int(draw(rng, p)) for _ in range(1_000)} == {1}


@settings(deadline=None)
@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0, 2.5]), min_size=2, max_size=8), st.data())
def test_argmax_takes_the_lowest_of_ties(scores, data):
    scores = np.array(scores)
    assert argmax(scores) == np.argmax(scores)
    excluded = data.draw(st.integers(0, len(scores) - 1))
    masked = scores.copy()
    masked[excluded] = -np.inf
    assert argmax_except(scores, excluded) == np.argmax(masked)


@settings(deadline=None)
@given(st.lists(st.floats(-1e5, 1e5), min_size=2, max_size=8), st.floats(0, 100))
def test_softmax_is_a_distribution(scores, temper):
    p = np.empty(len(scores))
    softmax(np.array(scores), temper, p)
    assert np.isfinite(p).all()
    assert p.sum() == pytest.approx(1)
    exact = temper * (np.array(scores) - max(scores))
    np.testing.assert_allclose(p, np.exp(exact) / np.exp(exact).sum(), rtol=1e-9)


def test_scaled_weights_know_their_length():
    rng = np.random.default_rng(0)
    W = new_scaled(7, 3)
    for t in range(5_000):
        x = rng.normal(size=7) * 10.0 ** rng.integers(-6, 3)
        expected = weights(W) + np.outer(x, c := rng.normal(size=3))
        add_outer(W, c, Example(np.arange(7, dtype=INDEX), x, 7), x @ weights(W))
        np.testing.assert_allclose(weights(W), expected, rtol=1e-9, atol=1e-12)
        if t % 3 == 0:
            project(W, 5.0)
            assert np.linalg.norm(weights(W)) <= 5.0 * (1 + 1e-9)
        assert length(W) == pytest.approx(np.linalg.norm(weights(W)), rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("n", [3, 300])
def test_inverses_equal_those_of_numpy(n):
    """One for each class, over several rewritings; n = 300 takes several tiles."""
    rng = np.random.default_rng(0)
    inverses = new_inverses(2, n, 0.5)
    A = [0.5 * np.eye(n), 0.5 * np.eye(n)]
    for _ in range(3 * PENDING + 5):
        k = rng.integers(2)
        indices = np.sort(rng.choice(n, size=min(n, 5), replace=False)).astype(INDEX)
        z = Example(indices, rng.normal(size=indices.size), n)
        A_inv = class_inverse(inverses, k)
        v = times(A_inv, z)
        dense = np.zeros(n)
        dense[indices] = z.values
        np.testing.assert_allclose(v, np.linalg.solve(A[k], dense), atol=1e-10)
        subtract(A_inv, v, 1 / (1 + dense @ v))
        A[k] += np.outer(dense, dense)


GO_ON = """
import sys, numpy as np, onebit
X, y = np.load(sys.argv[2])["X"], np.load(sys.argv[2])["y"]
learner = onebit.load(sys.argv[1])
print(onebit.play(learner, X, y).mistakes.tolist())
np.save(sys.argv[3], learner.coef_)
"""


@pytest.mark.parametrize("learner", [Perceptron(), Banditron(), SOBA(), SOBA(covariance="full")])
def test_goes_on_in_a_new_process(learner, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.choice(["left", "right", "up"], size=300)
    learner.set_params(random_state=3).fit(X, y)
    learner.save(tmp_path / "model.safetensors")
    np.savez(tmp_path / "data.npz", X=X, y=y)
    files = [tmp_path / name for name in ("model.safetensors", "data.npz", "coef.npy")]
    output = subprocess.run(
        [sys.executable, "-c", GO_ON, *files], check=True, capture_output=True, text=True
    ).stdout
    assert output.strip() == str(play(learner, X, y).mistakes.tolist())
    np.testing.assert_array_equal(np.load(tmp_path / "coef.npy"), learner.coef_)


@pytest.mark.parametrize(
    "labels", [["a", "bb"], [3, 1], [1.0, 2.0], [True, False], np.array(["x", "y"], dtype=object)]
)
def test_files_keep_labels_and_their_type(labels, tmp_path):
    X, y = np.eye(2), np.array(labels)
    learner = Banditron(random_state=0).fit(X, y)
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.classes_, learner.classes_)
    assert loaded.classes_.dtype == learner.classes_.dtype
    assert loaded.decide(X[0]).label in list(labels)


def test_files_that_are_not_learners(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"not a learner")
    with pytest.raises(ValueError, match="is not a learner saved by onebit"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")


def test_file_of_a_later_format(tmp_path, monkeypatch):
    learner = Banditron().fit(np.eye(2), [0, 1])
    monkeypatch.setattr("onebit.core.storage.FORMAT", 99)
    learner.save(tmp_path / "model")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="format 99"):
        load(tmp_path / "model")


def test_history_views_agree():
    rng = np.random.default_rng(0)
    flags = rng.integers(8, size=12_345).astype(np.uint8)
    whole, parts, totals = History(), History(), History(record=False)
    whole.append(flags)
    for piece in np.array_split(flags, 17):
        parts.append(piece)
        totals.append(piece)
    for history in (whole, parts, totals):
        assert history.rounds == 12_345
        assert history.n_mistakes == np.count_nonzero(flags & 1)
        assert history.n_explored == np.count_nonzero(flags & 2)
        assert history.n_updated == np.count_nonzero(flags & 4)
        rounds, errors = history.curve()
        np.testing.assert_allclose(errors, np.cumsum(flags & 1)[rounds - 1] / rounds)
        assert rounds[0] == 1
        assert rounds[-1] == 12_345
    np.testing.assert_array_equal(parts.mistakes, flags & 1 != 0)
    np.testing.assert_array_equal(parts.updated, flags & 4 != 0)
    with pytest.raises(ValueError, match="record=True"):
        _ = totals.mistakes


def test_empty_history():
    history = History()
    assert np.isnan(history.error_rate)
    assert history.mistakes.size == 0
    assert all(view.size == 0 for view in history.curve())


def test_history_plots(tmp_path):
    from matplotlib.figure import Figure

    history = play(Perceptron(), np.eye(3), [0, 1, 2])
    ax = history.plot(Figure().add_subplot())
    assert len(ax.lines) == 1


def test_play_reports_progress():
    X, y = np.eye(4).repeat(10_000, axis=0), np.arange(4).repeat(10_000)
    seen = []
    play(Perceptron(), X, y, progress=lambda history: seen.append(history.rounds))
    assert seen[-1] == 40_000
    assert len(seen) > 1


def test_play_takes_batches():
    X, y = np.eye(4).repeat(10, axis=0), np.arange(4).repeat(10)
    learner = Banditron(random_state=0, classes=range(4))
    batches = ((X[i : i + 7], y[i : i + 7]) for i in range(0, 40, 7))
    expected = play(Banditron(random_state=0), X, y).mistakes
    np.testing.assert_array_equal(play(learner, batches).mistakes, expected)
    with pytest.raises(ValueError, match="does not know its labels"):
        play(Banditron(), [(X, y)])


def test_decisions():
    decision = Banditron(classes=["a", "b"], random_state=0).decide([1.0, 2.0])
    assert repr(decision) == "Decision(label='a', probability=0.975)"
    thawed = pickle.loads(pickle.dumps(decision))
    assert (thawed.label, thawed.probability) == (decision.label, decision.probability)
    np.testing.assert_array_equal(thawed.x.values, decision.x.values)


@pytest.mark.parametrize(
    "convert", [sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array, sp.lil_array]
)
def test_sparse_rows_of_any_kind(convert):
    x = np.array([0.0, 2.0, 0.0, -1.0])
    learner = Perceptron(classes=[0, 1])
    learner.learn(learner.decide(convert(x[None])), truth=1)
    np.testing.assert_array_equal(learner.coef_, [-x, x])


def test_many_labels_in_a_small_batch_are_no_warning():
    learner = Banditron(classes=range(40), random_state=0)
    learner.partial_fit(np.ones((30, 2)), np.arange(30))
    assert learner.coef_.shape == (40, 2)


def test_one_dimensional_sparse_array():
    x = np.array([0.0, 2.0, 0.0, -1.0])
    learner = Perceptron(classes=[0, 1])
    learner.learn(learner.decide(sp.coo_array(x)), truth=1)
    np.testing.assert_array_equal(learner.coef_, [-x, x])


def test_corrupt_sparse_rows_are_refused():
    """Indices outside of the matrix would reach other memory."""
    X = sp.csr_array(np.eye(3))
    learner = Perceptron(classes=[0, 1, 2]).fit(X, [0, 1, 2])
    X.indices[1] = 7
    with pytest.raises(ValueError, match="row 1 of X has a feature 7"):
        learner.partial_fit(X, [0, 1, 2])
    with pytest.raises(ValueError, match="feature 7"):
        learner.decide(Example(np.array([7], dtype=INDEX), np.ones(1), 3))
    for indices, values in [
        (np.array([1]), np.ones(1)),
        (np.array([0, 50], dtype=INDEX), np.ones(1)),
        (np.array([1], dtype=INDEX), np.ones(2)),
    ]:
        with pytest.raises(ValueError, match="as many uint32 indices as float64 values"):
            learner.decide(Example(indices, values, 3))


def test_strided_examples_are_straightened():
    learner = Perceptron(classes=[0, 1])
    indices, values = np.arange(6, dtype=INDEX)[::2], np.arange(12.0)[::4]
    learner.learn(learner.decide(Example(indices, values, 6)), truth=1)
    np.testing.assert_array_equal(learner.coef_[1], [0, 0, 4, 0, 8, 0])


def test_first_decision_that_is_refused_does_not_start_a_learner():
    learner = Banditron(classes=[0, 1])
    for decision, told in [
        (Decision([1.0, 2.0], 5, 0.5), {"correct": True}),
        (Decision([1.0, 2.0], 1, 0.5), {"truth": 5}),
        (Decision([1.0, 2.0], 1, 2.0), {"correct": True}),
        (Decision([], 1, 0.5), {"correct": True}),
    ]:
        with pytest.raises(ValueError, match=r"unknown label 5|probability|0 features"):
            learner.learn(decision, **told)
    assert not hasattr(learner, "classes_")


def test_files_hold_the_parameters_a_learner_started_with(tmp_path):
    X, y = np.eye(3), [0, 1, 2]
    learner = SOBA(0.3, random_state=0).fit(X, y).set_params(covariance="full", gamma=0.9)
    learner.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert (loaded.gamma, loaded.covariance) == (0.3, "diagonal")
    np.testing.assert_array_equal(loaded.policy(X), learner.policy(X))


def test_learner_from_read_only_memory_learns(tmp_path):
    import joblib

    learner = SOBA(random_state=0).fit(np.eye(3), [0, 1, 2])
    joblib.dump(learner, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    for other in (learner, mapped):
        other.learn(other.decide([1.0, 0.0, 2.0]), truth=1)
    np.testing.assert_array_equal(mapped.coef_, learner.coef_)


def test_a_bandit_learner_takes_the_truth_as_one_bit():
    one, other = (SOBA(classes=[0, 1, 2], random_state=0) for _ in range(2))
    rng = np.random.default_rng(0)
    for x, y in zip(rng.normal(size=(50, 3)), rng.integers(3, size=50), strict=True):
        decision = one.decide(x)
        one.learn(decision, truth=y)
        other.learn(other.decide(x), correct=decision.label == y)
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_late_feedback_uses_the_decisions_probability_and_the_weights_at_arrival():
    x = np.array([1.0, -1.0])
    learner = Banditron(0.5, classes=[0, 1], random_state=0)
    old = learner.decide(x)
    learner.learn(Decision(-x, 1, 0.25), correct=True)
    before = learner.coef_
    y_hat = np.argmax(before @ x)
    learner.learn(old, correct=True)
    expected = before.copy()
    expected[y_hat] -= x
    expected[old.label] += x / old.probability
    np.testing.assert_allclose(learner.coef_, expected)


def test_feature_names_are_remembered(tmp_path):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    learner = Banditron(random_state=0).fit(X, [0, 1])
    learner.save(tmp_path / "model")
    assert load(tmp_path / "model").feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        learner.predict(X[["b", "a"]])


def test_a_copy_may_learn_from_the_same_decision():
    learner = Banditron(classes=[0, 1], random_state=0)
    decision = learner.decide([1.0])
    other = copy.deepcopy(learner)
    learner.learn(decision, correct=True)
    other.learn(decision, correct=True)
    np.testing.assert_array_equal(learner.coef_, other.coef_)


def test_policy_matches_a_hundred_thousand_draws():
    rng = new_generator(1)
    p, scores = np.empty(5), np.array([0.0, 3.0, 1.0, 3.0, 2.0])

    from typing import NamedTuple

    class State(NamedTuple):
        gamma: np.ndarray

    assert gamma_greedy(State(np.array(0.3)), 0, scores, p) == 1
    np.testing.assert_allclose(p, [0.06, 0.76, 0.06, 0.06, 0.06])
    counts = np.bincount([draw(rng, p) for _ in range(100_000)], minlength=5)
    assert chisquare(counts, 100_000 * p).pvalue > 1e-6
