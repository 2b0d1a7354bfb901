"""Descriptions of labels: the path of the reference, files, labels that come and go, and worth."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onebit import SOBA, OneBitClassifier, load, make_pipeline, play
from onebit.core.storage import arrays_of, from_bytes, to_bytes
from onebit.features import Records
from onebit.numerics.descriptions import BASELINE, NARROWING, RENEWED
from paths import assert_same_path
from references.descriptions import Described


def topics(K, n=150, d=60, n_words=6, seed=0):
    """Texts of words, of which each label has its own; descriptions have two of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    own = rng.choice(d, size=(K, 5))
    X, D = np.zeros((n, d)), np.zeros((K, d))
    for i, k in enumerate(y):
        X[i, rng.choice(own[k], 2)] = 1.0
        X[i, rng.choice(d, n_words - 2)] = 1.0
    for k in range(K):
        D[k, own[k, :2]] = 1.0
    return X, y, D


def measured(K, n=150, seed=0):
    """Numbers with offsets, around the description of each label; zeros are left out of these."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    D = 5.0 + 3.0 * rng.normal(size=(K, 6))
    X = D[y] + rng.normal(size=(n, 6))
    X[n // 2] = 0.0
    D[0, :3] = 0.0
    return X, y, D


def spread_out(K, n=200, d=40, seed=0):
    """Unit vectors around the description of each label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    D = rng.normal(size=(K, d)) / np.sqrt(d)
    X = D[y] + 0.2 * rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), y, D


def load_again(learner):
    return from_bytes(to_bytes(learner))


def described(D, **given):
    learner = OneBitClassifier(classes=range(len(D)), **given)
    return learner.describe({k: d for k, d in enumerate(D) if d.any()})


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("stream", [topics, measured, spread_out])
@pytest.mark.parametrize("K", [2, 7])
def test_walks_the_path_of_the_reference(stream, K, storage):
    X, y, D = stream(K)
    form = {"covariance": "diagonal", "views": "line"}
    slow = Described(X.shape[1], K, False, D, views="line")
    learner = described(D, **form, random_state=K)
    assert_same_path(learner, slow, X, y, storage, quadrature=1e-6)
    assert learner.worth_ == pytest.approx((slow.line.theta, np.sqrt(slow.line.variance)))
    numbers = learner._run.state.descriptions.numbers
    assert numbers[NARROWING] == pytest.approx(slow.line.narrowing)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("described_labels", [[3], [0, 2, 3, 5, 6]])
def test_some_labels_without_a_description_walk_the_path(described_labels, storage):
    X, y, D = spread_out(7)
    D[np.setdiff1d(np.arange(7), described_labels)] = 0.0
    form = {"covariance": "diagonal", "views": "line"}
    slow = Described(X.shape[1], 7, False, D, views="line")
    learner = described(D, **form, random_state=1)
    assert_same_path(learner, slow, X, y, storage, quadrature=1e-6)
    numbers = learner._run.state.descriptions.numbers
    assert numbers[BASELINE] == pytest.approx(slow.line.baseline)


@pytest.mark.parametrize(
    "form",
    [
        {"covariance": "full", "views": "line"},
        {"covariance": "diagonal", "standardize": False, "views": "line"},
        {"covariance": "diagonal", "views": "cells"},
        {"covariance": "diagonal", "views": "line", "explore": 0.0, "a": 0.1},
    ],
)
def test_walks_the_path_of_the_reference_in_other_forms(form):
    X, y, D = measured(3)
    if not form.get("standardize", True):
        X, D = X / 10.0, D / 10.0
    names = ("explore", "a", "standardize", "views")
    given = {name: value for name, value in form.items() if name in names}
    slow = Described(X.shape[1], 3, form["covariance"] == "full", D, **given)
    assert_same_path(described(D, **form, random_state=1), slow, X, y, quadrature=1e-6)


def test_changes_walk_the_path_of_the_reference():
    """What was learned is forgotten, with the narrow prior of before, and theta is in doubt."""
    X, y, D = spread_out(4, n=1_600)
    y = np.where(np.arange(y.size) < 900, y, (y + 1) % 4)
    form = {"covariance": "diagonal", "views": "line"}
    slow, learner = Described(40, 4, False, D, views="line"), described(D, **form, random_state=0)
    assert_same_path(learner, slow, X, y, quadrature=1e-6)
    assert learner.changes_


# Good and bad descriptions


def test_good_descriptions_are_used_at_once_and_lies_cost_little():
    X, y, D = topics(20, n=3_000, d=300, n_words=8)
    wrong = {}
    for name, said in {"none": None, "good": D, "lies": np.roll(D, 1, axis=0)}.items():
        learner = OneBitClassifier(classes=range(20), random_state=0)
        if said is not None:
            learner.describe(dict(enumerate(said)))
        wrong[name] = play(learner, X, y).mistakes
        wrong[name + " worth"] = learner._run.state.descriptions.numbers[0]
    assert wrong["good"][:200].mean() < 0.75 * wrong["none"][:200].mean()
    assert wrong["good"].mean() < 0.75 * wrong["none"].mean()
    assert wrong["lies"].mean() < 1.15 * wrong["none"].mean()
    assert wrong["good worth"] > 5.0 > 2.0 > wrong["lies worth"]


def test_a_new_label_with_a_description_starts_warm():
    """In the line, which is the member that takes descriptions."""
    mistakes = {}
    for warm in (False, True):
        X, y, D = topics(12, n=2_400, d=200, n_words=8, seed=1)
        learner = OneBitClassifier(classes=range(11), random_state=0, views="line")
        learner.describe({k: D[k] for k in range(11)})
        old = y < 11
        play(learner, X[old][:1_000], y[old][:1_000])
        learner.add_classes({11: D[11] if warm else None})
        later = np.flatnonzero(np.cumsum(old) > 1_000)
        wrong = play(learner, X[later], y[later]).mistakes[y[later] == 11]
        mistakes[warm] = wrong[:20].sum()
    assert mistakes[True] <= 0.5 * mistakes[False]


def line_of(learner):
    """The weights of the line, and the covariance of each label's, as matrices."""
    line = learner._run.state.line
    if isinstance(line.S, np.ndarray):
        return line.W.copy(), [float(line.age) * np.diag(column) for column in line.S.T]
    pending = range(int(line.S.n_pending.max(initial=0)))
    matrices = []
    for base, vectors, weights, (n,) in zip(*line.S[:4], strict=True):
        found = base.copy()
        for i in pending[:n]:
            found -= weights[i] * np.outer(vectors[i], vectors[i])
        matrices.append(float(line.age) * found)
    return line.W.copy(), matrices


def regressed(W, D, d):
    """1.5 times the mean of a Gaussian process over descriptions, given the weights W for D."""
    W, d, D = W - W.mean(axis=1, keepdims=True), d - D.mean(axis=1), D - D.mean(axis=1)[:, None]
    return 1.5 * W @ np.linalg.inv(D.T @ D + 0.25 * np.eye(D.shape[1])) @ (D.T @ d)


@pytest.mark.parametrize("exclusive", [True, False])
@pytest.mark.parametrize("form", ["diagonal", "full"])
@pytest.mark.parametrize("stream", [topics, measured])
def test_a_new_label_starts_with_what_similar_ones_have_learned(stream, form, exclusive):
    X, y, D = stream(7)
    given = {"covariance": form, "views": "line", "exclusive": exclusive}
    learner = OneBitClassifier(classes=range(6), random_state=0, **given)
    learner.describe(dict(enumerate(D[:6])))
    play(learner, X[y < 6], y[y < 6])
    plain = load_again(learner)
    plain.add_classes([6])
    first = line_of(plain)[0][:, 6]
    learner.add_classes({6: D[6]})
    W, found = line_of(learner)[0][:, :6], learner._run.state.descriptions.D
    expected = regressed(W, found[:, :6], found[:, 6])
    assert np.abs(expected).max() > 0.01
    np.testing.assert_allclose(line_of(learner)[0][:, 6], first + expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("form", ["diagonal", "full"])
def test_what_bits_said_of_a_label_outweighs_what_similar_ones_have_learned(form):
    """The evidence of the bits is the same with the prior's new mean and precision."""
    X, y, D = spread_out(5, n=400)
    learner = OneBitClassifier(
        classes=range(5), covariance=form, views="line", forgetting=0.0, random_state=0
    )
    first = np.diag(line_of(learner.describe({k: D[k] for k in range(4)}))[1][4])
    play(learner, X, y)
    W, S = line_of(learner)
    learner.describe({4: D[4]})
    state = learner._run.state
    m = regressed(W[:, :4], state.descriptions.D[:, :4], state.descriptions.D[:, 4])
    prior = np.diag(1.0 / first)
    now = prior * (state.descriptions.numbers[NARROWING] if form == "diagonal" else 1.0)
    evidence = np.linalg.inv(S[4]) - prior
    expected = np.linalg.solve(evidence + now, np.linalg.solve(S[4], W[:, 4]) + now @ m)
    after = line_of(learner)[0]
    np.testing.assert_allclose(after[:, 4], expected, rtol=1e-6, atol=1e-10)
    np.testing.assert_array_equal(after[:, :4], W[:, :4])
    assert np.abs(after[:, 4] - W[:, 4]).max() > 1e-3


def test_without_descriptions_nothing_changes():
    X, y, _ = topics(4)
    learner = OneBitClassifier(classes=range(4), random_state=0)
    play(learner, X, y)
    assert learner.worth_ == (0.0, 0.0)
    assert learner._run.state.descriptions.D.size == 0


def test_an_empty_description_carries_no_information():
    X, y, _ = topics(4, seed=3)
    plain = OneBitClassifier(classes=range(4), random_state=0)
    empty = OneBitClassifier(classes=range(4), random_state=0).describe({2: np.zeros(60)})
    assert play(plain, X, y).mistakes.tolist() == play(empty, X, y).mistakes.tolist()


# Some labels without a description


def test_a_label_without_a_description_is_tried_among_described_ones():
    """Nothing matches its examples, so it is as likely as any label, and is soon found."""
    X, y, D = topics(12, n=3_000, d=200, n_words=8, seed=1)
    learner = OneBitClassifier(classes=range(12), random_state=0)
    learner.describe({k: D[k] for k in range(11)})
    wrong = play(learner, X, y).mistakes
    assert wrong[y == 11][-100:].mean() < 0.5
    assert wrong[y < 11].mean() < 0.4


def test_a_single_description_favours_its_label_only_where_it_matches():
    X, y, D = topics(6, n=600, d=200, n_words=8, seed=1)
    form = {"covariance": "diagonal", "views": "line"}
    learner = OneBitClassifier(classes=range(6), **form, random_state=0).describe({2: D[2]})
    p, matches = learner.predict_proba(X)[:, 2], X @ D[2] > 0
    assert p[matches].min() > 1 / 6
    np.testing.assert_allclose(p[~matches], 1 / 6)
    play(learner, X, y)
    numbers = learner._run.state.descriptions.numbers
    learner._run.state.line.W[:] = 0.0  # what the description alone says
    assert learner.predict_proba(X)[~matches, 2].max() < 1 / 6 < p[matches].min()
    assert 0.0 < numbers[BASELINE] < learner.worth_[0] / 2


def test_only_described_labels_have_a_narrow_prior():
    X, y, D = spread_out(8, n=400)
    form = {"covariance": "diagonal", "views": "line"}
    learner = OneBitClassifier(classes=range(7), **form, random_state=0)
    learner.describe({k: D[k] for k in range(6)})
    play(learner, X[y < 7], y[y < 7])
    learner.add_classes([7])
    posterior, numbers = learner._run.state.line, learner._run.state.descriptions.numbers
    widest = posterior.settings.widest
    assert numbers[NARROWING] > 1.5
    assert posterior.S[:, :6].max() <= widest / numbers[NARROWING] * (1 + 1e-9)
    assert (posterior.S[:, 7] == widest).all()
    before, weights = posterior.S.copy(), posterior.W.copy()
    learner.describe({7: D[7]})
    assert posterior.S[:, 7] == pytest.approx(widest / numbers[NARROWING])
    np.testing.assert_array_equal(posterior.W[:, :7], weights[:, :7])
    warm = posterior.W[:, 7].copy()
    learner.describe({7: np.zeros(40)})
    np.testing.assert_allclose(posterior.S, before)
    np.testing.assert_array_equal(posterior.W[:, 7], warm)


# At any time


def test_descriptions_may_come_late_and_be_replaced():
    X, y, D = topics(5)
    learner = OneBitClassifier(classes=range(5), random_state=0)
    play(learner, X[:50], y[:50])
    before = learner.decision_function(X[:3])
    learner.describe({0: np.roll(D[0], 7)})
    learner.describe({1: D[1]})
    learner.describe({0: D[0]})
    assert np.abs(learner.decision_function(X[:3]) - before).max() > 0
    once = OneBitClassifier(classes=range(5), random_state=0)
    play(once, X[:50], y[:50])
    once.describe({0: D[0], 1: D[1]})
    for k in (0, 1):
        columns = [np.sort(one._run.state.descriptions.D[:, k]) for one in (learner, once)]
        assert columns[0][-2:].tolist() == columns[1][-2:].tolist()
    play(learner, X, y)
    assert learner.worth_[0] != 0.0


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**16), st.integers(2, 6))
def test_descriptions_keep_their_place_among_features(seed, K):
    rng = np.random.default_rng(seed)
    D = rng.normal(size=(K, 30)) * (rng.random((K, 30)) < 0.3)
    learner = OneBitClassifier(classes=range(K), standardize=False, random_state=0)
    for k in rng.permutation(K).tolist():
        learner.describe({k: rng.normal(size=30)})
        learner.describe({k: D[k]})
    found = learner._run.state.descriptions
    again = np.zeros((30, K))
    features = np.flatnonzero(found.place)
    again[features] = found.given[found.place[features] - 1]
    assert again.T.tolist() == D.tolist()
    lengths = np.linalg.norm(found.D, axis=0)
    np.testing.assert_allclose(lengths, np.where(D.any(axis=1), 1.0, 0.0))
    found.check()


def test_a_file_goes_on_as_the_learner_would(tmp_path):
    X, y, D = topics(5)
    learner = described(D, random_state=0)
    learner.save(tmp_path / "unplayed")
    assert load(tmp_path / "unplayed").worth_ == learner.worth_
    play(learner, X[:70], y[:70])
    learner.add_classes({9: np.roll(D[0], 3)})
    learner.retire_classes([2])
    learner.save(tmp_path / "learner")
    again = load(tmp_path / "learner")
    keep = y != 2
    for one in (learner, again):
        one.history = play(one, X[keep], y[keep]).mistakes.tolist()
    assert learner.history == again.history
    for (name, a), (_, b) in zip(
        arrays_of(learner._run.state), arrays_of(again._run.state), strict=True
    ):
        assert a.tolist() == b.tolist(), name


def test_scales_are_those_of_examples():
    X, y, D = measured(3)
    learner = described(D, random_state=0, views="line")
    play(learner, X, y)
    found, scales = learner._run.state.descriptions, learner._run.state.scales
    assert found.numbers[RENEWED] == scales.totals[1] > 0
    inputs = np.where(D != 0, scales.features[:, 1] * (D - scales.features[:, 0]), 0.0)
    expected = inputs / np.linalg.norm(inputs, axis=1, keepdims=True)
    features = np.flatnonzero(found.place)
    np.testing.assert_allclose(found.D[found.place[features] - 1].T, expected[:, features])


# Pipelines and errors


def test_a_pipeline_encodes_descriptions_with_its_steps():
    classes = ["billing", "support", "fax"]
    router = make_pipeline(Records(1024), OneBitClassifier(classes=classes, random_state=0))
    names = {"billing": "card invoice", "support": "app login", "fax": None}
    del names["fax"]
    assert router.describe(names) is router
    assert router.predict(["my card invoice", "the app login"]).tolist() == ["billing", "support"]
    router.add_classes({"delivery": "parcel late", "other": None})
    assert router.predict(["where is my parcel"]).tolist() == ["delivery"]
    assert "other" in router.classes_
    assert router.worth_[0] > 0


def test_what_is_no_description_is_refused():
    X, y, D = topics(3)
    learner = OneBitClassifier(classes=range(3), random_state=0)
    for wrong, words in [
        ({}, "mapping from labels"),
        ([D[0]], "mapping from labels"),
        ({0: D[0], 7: D[1]}, "unknown label 7"),
        ({0: np.full(60, np.nan)}, "description of 0"),
        ({0: D[0], 1: D[1, :5]}, "description of 1"),
    ]:
        with pytest.raises(ValueError, match=words):
            learner.describe(wrong)
    assert learner._run is None
    with pytest.raises(ValueError, match="does not know its labels"):
        OneBitClassifier().describe({0: D[0]})
    with pytest.raises(ValueError, match="SOBA takes no descriptions"):
        SOBA(classes=range(3)).describe({0: D[0]})
    soba = SOBA(classes=range(3)).partial_fit(X, y)
    with pytest.raises(ValueError, match="SOBA takes no descriptions"):
        soba.add_classes({5: D[0]})
    assert soba.classes_.tolist() == [0, 1, 2]
    learner.describe({0: D[0]})
    with pytest.raises(ValueError, match="60 features"):
        learner.add_classes({5: D[0, :5]})
    assert learner.classes_.tolist() == [0, 1, 2]
