"""Embeddings, alone and beside words, stay as they are."""

import numpy as np
import pytest
import scipy.sparse as sp

from onebit import OneBitClassifier, play
from onebit.numerics.scales import CONSTANT, EXCEEDS, FACTOR, HAS_VECTOR, IS_MEASUREMENT, LOCATION
from paths import assert_same_path
from references import one_bit_classifier as reference


def embedded(K, n=120, d=40, n_words=0, seed=0):
    """Unit vectors around a direction for each label; and words, of which each row has four."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    E = 0.3 * rng.normal(size=d) + rng.normal(size=(K, d))[y] + 0.5 * rng.normal(size=(n, d))
    E /= np.linalg.norm(E, axis=1, keepdims=True)
    words = np.zeros((n, n_words))
    for i in range(n if n_words else 0):
        words[i, rng.choice(n_words, 4, replace=False)] = 1.0
    return np.c_[E, words], y


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_words", [0, 50])
def test_an_embedding_walks_the_path_of_the_reference(n_words, storage):
    X, y = embedded(3, n_words=n_words)
    form = {"covariance": "diagonal", "views": "line"}
    slow = reference.OneBitClassifier(X.shape[1], 3, False, views="line")
    learner = OneBitClassifier(**form, random_state=3)
    assert_same_path(learner, slow, X, y, storage, quadrature=1e-6)
    scales = learner._run.state.scales
    assert scales.totals[HAS_VECTOR] == 1.0
    assert not scales.kinds[:, IS_MEASUREMENT].any()
    assert not scales.features[:, LOCATION].any()
    np.testing.assert_allclose(scales.features[:, FACTOR], slow.scales.factors)
    assert scales.features[:40, FACTOR] == pytest.approx(2.0 if n_words else 1.0)
    assert scales.totals[CONSTANT] == pytest.approx(0.3)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_rare_words_in_columns_of_an_embedding_do_not_make_them_measurements(storage):
    """As `Records` hashes words and embeddings into the same columns."""
    X, y = embedded(3, n=200, d=60, n_words=50)
    for i in range(4, 200, 8):
        X[i, i % 5] += np.sign(X[i, i % 5])
    slow = reference.OneBitClassifier(X.shape[1], 3, False, views="line")
    learner = OneBitClassifier(covariance="diagonal", views="line", random_state=3)
    assert_same_path(learner, slow, X, y, storage, quadrature=1e-6)
    scales = learner._run.state.scales
    assert scales.kinds[:5, EXCEEDS].min() >= 4
    assert not scales.kinds[:, IS_MEASUREMENT].any()
    assert scales.features[:60, FACTOR] == pytest.approx(np.sqrt(4.0 + 25 / 200), rel=1e-2)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: 0.9 * X,  # of another length
        lambda X: X[:, :31] / np.linalg.norm(X[:, :31], axis=1, keepdims=True),  # of few columns
        lambda X: X * np.where(np.arange(len(X)) % 10, 1.0, 0.5)[:, None],  # not always
        lambda X: np.c_[X, np.full(len(X), 0.5)],  # with a number beside it
    ],
)
def test_dense_columns_that_are_no_embedding_are_measurements(change):
    X, y = embedded(3)
    learner = OneBitClassifier(views="line", random_state=0, classes=range(3))
    play(learner, change(X), y)
    assert learner._run.state.scales.totals[HAS_VECTOR] == 0.0
    assert learner._run.state.scales.kinds[:, IS_MEASUREMENT].all()


def test_an_embedding_of_few_digits_is_one():
    X, y = embedded(3)
    learner = OneBitClassifier(random_state=0, classes=range(3))
    play(learner, np.round(X, 2), y)
    assert learner._run.state.scales.totals[HAS_VECTOR] == 1.0


def test_columns_that_are_an_embedding_no_longer_become_measurements():
    X, y = embedded(3, n=60)
    learner = OneBitClassifier(random_state=0, classes=range(3))
    play(learner, X, y)
    play(learner, 0.5 * X, y)
    assert learner._run.state.scales.totals[HAS_VECTOR] == 0.0
    assert learner._run.state.scales.kinds[:, IS_MEASUREMENT].all()
