"""Reasons: they add up, have the names that people gave, and can be read and drawn."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.feature_extraction import FeatureHasher
from sklearn.preprocessing import Normalizer, StandardScaler

from drawn import described
from onebit import (
    SOBA,
    Banditron,
    Confidit,
    HoeffdingTree,
    KernelConfidit,
    LogisticThompson,
    Mixture,
    OneBitClassifier,
    Perceptron,
    SoftmaxThompson,
    make_pipeline,
    play,
)
from onebit.core.explanation import AVERAGE, BIN, DESCRIPTION, PAIR, PRODUCT, TRIPLE
from onebit.features import Records
from onebit.numerics.bins import CODES, IS_NUMERIC, LEVELS, MOST_CELLS, n_inputs
from onebit.numerics.contributions import log_logarithmic_mean

pytestmark = pytest.mark.xdist_group("one_bit_classifier")


def assert_adds_up(learner, x, **chosen):
    """The reasons add up to the difference of the scores, to 1e-9."""
    found = learner.explain(x, **chosen)
    example = x if sp.issparse(x) else np.asarray(x)[None]
    scores = dict(zip(learner.classes_.tolist(), learner.scores(example)[0], strict=True))
    difference = scores[found.label] - scores[found.against]
    assert math.fsum(reason.amount for reason in found.reasons) == pytest.approx(
        difference, abs=1e-9
    )
    assert found.difference == pytest.approx(difference, abs=1e-9)
    assert found.scores == pytest.approx((scores[found.label], scores[found.against]), abs=1e-9)
    constant = sum(reason.amount for reason in found.reasons if not reason.columns)
    assert found.per_feature.sum() + constant == pytest.approx(difference, abs=1e-9)
    return found


def kinds_in(found):
    return {one.input.kind for reason in found.reasons for one in reason.contributions}


def table(d, n=300, K=3, seed=0):
    """Rows with levels, numbers and zeros, and labels that follow from two columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, 0] = rng.integers(3, size=n)
    X[:, 1] = rng.integers(2, size=n)
    X[:, -1] *= rng.random(n) < 0.5
    return X, ((X[:, 0] + 2 * X[:, 1]) % K).astype(int)


# They add up


@pytest.mark.parametrize("views", ["line", "cells", "products"])
@pytest.mark.parametrize("K", [2, 3])
def test_reasons_of_members_add_up(views, K):
    X, y = table(4, K=K)
    form = {"covariance": "diagonal"} if views == "cells" else {}  # which is compiled anyway
    learner = OneBitClassifier(views=views, **form, classes=range(K), random_state=0).fit(X, y)
    trust_all_alike(learner)
    for x in (*X[:3], np.zeros(4), 100.0 * X[0]):
        assert_adds_up(learner, x)
    kinds = kinds_in(learner.explain(X[0]))
    of_cells = {BIN, PAIR, TRIPLE, AVERAGE}
    expected = {"line": set(), "cells": of_cells, "products": of_cells | {PRODUCT}}
    assert expected[views] <= kinds


def trust_all_alike(learner):
    trust = learner._run.state.mixture.trust
    trust[:] = 1.0 / trust.size


@pytest.mark.parametrize("d", [70, 30])
def test_reasons_of_many_columns_add_up(d):
    """Beyond 64 columns zeros have no bin, and with more than 23 the cells are hashed."""
    X, y = table(d)
    X[:, 5:] *= np.random.default_rng(1).random(X[:, 5:].shape) < 0.2
    learner = OneBitClassifier(covariance="diagonal", views="cells", random_state=0).fit(X, y)
    for x in X[:2]:
        assert_adds_up(learner, x)
        assert_adds_up(learner, sp.csr_array(x[None]))


def test_a_dense_and_a_sparse_row_have_the_same_reasons():
    X, y = table(4)
    learner = OneBitClassifier(random_state=0).fit(X, y)
    dense, sparse = learner.explain(X[3]), learner.explain(sp.csr_array(X[[3]]))
    assert [one.text for one in dense.reasons] == [one.text for one in sparse.reasons]
    np.testing.assert_allclose(dense.per_feature, sparse.per_feature, atol=1e-12)


@pytest.mark.parametrize("form", SoftmaxThompson.forms, ids=str)
def test_reasons_of_one_model_add_up(form):
    X, y = table(4)
    learner = SoftmaxThompson(**form, random_state=0).fit(X, y)
    for x in (X[0], np.zeros(4)):
        assert_adds_up(learner, x)


@pytest.mark.parametrize(
    "learner",
    [
        Banditron(),
        SOBA(),
        Confidit(),
        Confidit(normalize=False, a=1.0),
        KernelConfidit(kernel="linear"),
        KernelConfidit(kernel="linear", normalize=False, a=1.0),
    ],
    ids=str,
)
def test_reasons_of_linear_learners_add_up(learner):
    X, y = table(4)
    learner = clone(learner).set_params(classes=range(3), random_state=0).fit(X[:60], y[:60])
    found = assert_adds_up(learner, X[0], label=1, against=2)
    by_hand = (learner.coef_[1] - learner.coef_[2]) * X[0]
    by_hand /= np.linalg.norm(X[0]) if getattr(learner, "normalize", False) else 1.0
    np.testing.assert_allclose(found.per_feature, by_hand, rtol=1e-9, atol=1e-12)
    assert found.probabilities is None


def test_reasons_of_a_mixture_of_learners_add_up():
    X, y = table(4)
    learner = Mixture(classes=range(3), random_state=0).fit(X[:80], y[:80])
    found = assert_adds_up(learner, X[0])
    members = {one.member for reason in found.reasons for one in reason.contributions}
    assert members == {"line", "cells"}


def test_reasons_for_labels_that_are_right_on_their_own_add_up():
    """Scores are log-odds, whose level is part of the constant."""
    X, y = table(4)
    learner = LogisticThompson(classes=range(3), random_state=0).fit(X[:80], y[:80])
    for x in (X[0], np.zeros(4)):
        found = assert_adds_up(learner, x)
        right = learner.right_proba(x[None])[0]
        assert found.probabilities == pytest.approx((right[found.label], right[found.against]))


def test_reasons_with_descriptions_and_retired_labels_add_up():
    X, y = table(4)
    learner = OneBitClassifier(views="line", classes=range(3), random_state=0)
    learner.describe({k: X[y == k].mean(axis=0) for k in range(3)})
    for x, truth in zip(X[:60], y, strict=False):
        decision = learner.decide(x)
        learner.learn(decision, correct=bool(decision.label == truth))
    found = assert_adds_up(learner, X[0])
    assert DESCRIPTION in kinds_in(found)
    learner.retire_classes([1])
    found = assert_adds_up(learner, X[0])
    assert {found.label, found.against} == {0, 2}
    with pytest.raises(ValueError, match="the label 1 is retired"):
        learner.explain(X[0], against=1)


def test_scores_at_their_floor_are_explained_by_their_logarithms():
    """A label whose probability is below 1e-300 has the score -700, and the reasons say less."""
    X, y = table(4)
    learner = OneBitClassifier(covariance="diagonal", views="cells", random_state=0).fit(X, y)
    for member in learner._run.state.mixture.named.values():
        member.posterior.W[:] *= 1e5
        if isinstance(member.posterior.S, np.ndarray):
            member.posterior.S[:] = 1e-9
        else:
            member.posterior.S.base[:] *= 1e-9
    scores = learner.scores(X[:50])
    row, k = np.argwhere(scores == -700.0)[0]
    found = learner.explain(X[row], against=int(k))
    assert found.scores[1] < -700.0
    assert found.difference == pytest.approx(found.scores[0] - found.scores[1])


@given(st.floats(-300, 0), st.floats(-300, 0))
@settings(max_examples=100)
def test_logarithmic_means(log_a, log_b):
    a, b = math.exp(log_a), math.exp(log_b)
    found = math.exp(log_logarithmic_mean(log_a, log_b))
    assert math.sqrt(a * b) * (1 - 1e-9) <= found <= (a + b) / 2 * (1 + 1e-9)
    if abs(log_a - log_b) > 0.1:
        assert found == pytest.approx((a - b) / (log_a - log_b), rel=1e-9)


# What they are about


def planted(view, index, d=4):
    """Return the reasons of a learner that knows one weight of a view."""
    X, y = table(d)
    learner = OneBitClassifier(views="products", random_state=0).fit(X[:40], y[:40])
    for member in learner._run.state.mixture.named.values():
        member.posterior.W[:] = 0.0
    trust_all_alike(learner)
    learner._run.state.mixture.weighed_pairs.cells[:] = 0.0
    learner._run.state.mixture.named[view].posterior.W[index, 1] = 5.0
    found = learner.explain(X[2], label=1, against=0)
    return [reason for reason in found.reasons if reason.columns]


def code_of(learner, j, value):
    bins = learner._run.state.mixture.members.cells.view_of_x
    levels = bins.levels[j, : bins.kinds[j, 0]].tolist()
    return levels.index(value) if value in levels else LEVELS


@pytest.mark.parametrize("j", range(4))
def test_a_bin_is_about_its_column(j):
    X, y = table(4)
    learner = OneBitClassifier(views="products", random_state=0).fit(X[:40], y[:40])
    bins = learner._run.state.mixture.members.cells.view_of_x
    is_numeric = bins.kinds[j, IS_NUMERIC]
    code = int((bins.edges[j] < X[2, j]).sum()) if is_numeric else code_of(learner, j, X[2, j])
    reasons = planted("cells", 1 + 4 + CODES * j + code)
    assert {reason.columns for reason in reasons} == {(j,)}
    (cell,) = {one.input.cell for one in reasons[0].contributions if one.input.kind == BIN}
    assert cell == (expected_cell(bins, j, X[2, j]),)


def expected_cell(bins, j, value):
    if not bins.kinds[j, IS_NUMERIC]:
        return f"= {value:.4g}"
    below, above = bins.edges[j][bins.edges[j] < value], bins.edges[j][bins.edges[j] >= value]
    if not below.size:
        return f"at most {above[0]:.4g}"
    return f"{below[-1]:.4g} to {above[0]:.4g}" if above.size else f"above {below[-1]:.4g}"


@pytest.mark.parametrize(("i", "j"), [(0, 0), (0, 3), (1, 2), (2, 2), (3, 3)])
def test_a_product_is_about_its_columns(i, j):
    index = 4 + i * 4 - i * (i + 1) // 2 + j
    reasons = planted("products", index)
    about = [reason for reason in reasons if abs(reason.amount) > 1e-12]
    assert {reason.columns for reason in about} == {tuple(sorted({i, j}))}


def test_a_pair_decides_and_is_the_first_reason():
    """A label that two columns decide together is explained by the two together."""
    rng = np.random.default_rng(0)
    X = rng.integers(4, size=(3_000, 4)).astype(float)
    y = np.where(X[:, 0] == X[:, 2], "pair", "none")
    learner = OneBitClassifier(random_state=0)
    play(learner.set_params(classes=["none", "pair"]), X, y)
    hands = [x for x in X[-200:] if x[0] == x[2] and len({*x}) == 3][:5]
    for hand in hands:
        found = learner.explain(hand, names=["first", "second", "third", "fourth"])
        assert found.label == "pair"
        first = next(reason for reason in found.reasons if reason.columns)
        assert first.text == f"first = {hand[0]:.0f} & third = {hand[2]:.0f}"


# Names


def test_names_are_those_of_a_frame_of_the_caller_or_none():
    X, y = table(3)
    frame = pd.DataFrame(X, columns=["colour", "size", "weight"])
    learner = Banditron(random_state=0).fit(frame, y)
    texts = {reason.text for reason in learner.explain(frame.iloc[0]).reasons}
    assert f"size = {X[0, 1]:.4g}" in texts or X[0, 1] == 0.0
    assert all(text.split(" = ")[0] in frame.columns for text in texts)
    named = learner.explain(X[0], names=["a", "b", "c"])
    assert {reason.text[0] for reason in named.reasons} <= set("abc")
    plain = Banditron(random_state=0).fit(X, y).explain(X[0])
    assert all(reason.text.startswith("x[") for reason in plain.reasons)
    with pytest.raises(ValueError, match="names has one for each of 3 features; got 1"):
        learner.explain(X[0], names=["a"])


TICKET = {
    "subject": "Card charged twice",
    "plan": "pro",
    "amount": 12.5,
    "late": 0,
    "user": {"age": 31},
    "vector": np.ones(8).tolist(),
}


def test_records_name_columns_by_fields_and_words():
    records = Records(2**20)
    names, example = records.names(TICKET), records.encode(TICKET)
    texts = {one.text for one in names.values()}
    assert texts == {
        "subject: card",
        "subject: charged",
        "subject: twice",
        "plan: pro",
        "amount = 12.5",
        "late = 0",
        "user.age = 31",
        "vector (8 numbers)",
    }
    assert set(example.indices.tolist()) <= set(names)
    assert {one.text for one in records.names("Card, charged").values()} == {"card", "charged"}


def test_names_that_share_a_column_are_joined():
    names = Records(2).names({"a": 1.0, "b": 2.0, "c": 3.0})
    assert sorted(" or ".join(one.text for one in names.values()).split(" or ")) == [
        "a = 1",
        "b = 2",
        "c = 3",
    ]


@pytest.mark.parametrize("steps", [[Records(1024)], [Records(1024), Normalizer()]], ids=str)
def test_a_pipeline_explains_in_the_words_of_the_record(steps):
    learner = OneBitClassifier(classes=["billing", "support"], random_state=0)
    router = make_pipeline(*steps, learner)
    for _ in range(3):
        for subject, desk in [("card charged", "billing"), ("app down", "support")]:
            router.learn(router.decide({"subject": subject}), truth=desk)
    found = router.explain({"subject": "the app charged", "late": None})
    assert found.label in ("billing", "support")
    amounts = {reason.text: reason.amount for reason in found.reasons}
    sign = 1 if found.label == "billing" else -1
    assert sign * amounts["subject: charged"] > 0
    assert sign * amounts["subject: app"] < 0
    assert router.rank({"subject": "card"})[0].label == "billing"
    assert router.explain({"subject": "card"}, "support", "billing").label == "support"


def test_a_pipeline_explains_by_the_names_of_fitted_steps():
    X, y = table(3)
    frame = pd.DataFrame(X, columns=["colour", "size", "weight"])
    model = make_pipeline(StandardScaler(), Perceptron()).fit(frame, y)
    assert {one.text.split(" = ")[0] for one in model.explain(frame.iloc[[0]]).reasons} <= set(
        frame.columns
    )
    hashed = make_pipeline(FeatureHasher(64), Perceptron(classes=[0, 1]))
    hashed.learn(hashed.decide({"a": 1.0}), truth=1)
    assert hashed.explain({"a": 1.0}).reasons[0].text.startswith("x[")


def test_what_a_record_lacks_is_reported():
    X, y = table(3)
    records = [{"a": 5.0 + x[0], "b": 3.0 + x[1]} for x in X]
    router = make_pipeline(Records(16), OneBitClassifier(classes=range(3), random_state=0))
    for record, truth in zip(records[:60], y, strict=False):
        decision = router.decide(record)
        router.learn(decision, correct=bool(decision.label == truth))
    texts = [reason.text for reason in router.explain({"a": 5.0}).reasons]
    assert any("which the record lacks" in text for text in texts)


# Texts and pictures


def explained():
    X, y = table(4)
    learner = OneBitClassifier(random_state=0, classes=["lo", "mid", "hi"])
    learner.fit(X, np.array(["lo", "mid", "hi"])[y])
    return learner.explain(X[0], names=["a" * 90, "b", "c", "d"])


def test_a_text_has_eighty_columns_and_adds_up():
    found = explained()
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"{found.label} (")
    shown = [float(line.split()[0]) for line in lines[2:]]
    assert sum(shown[:-1]) == pytest.approx(shown[-1], abs=0.01)
    assert shown[-1] == pytest.approx(found.difference, abs=1e-3)
    amounts = [amount for _, amount in found.shown(3)]
    assert len(amounts) == 4
    assert math.fsum(amounts) == pytest.approx(found.difference)


def test_a_picture_shows_the_reasons():
    found = explained()
    figure = Figure()
    ax = found.plot(figure.add_subplot(), n=3)
    assert [bar.get_width() for bar in ax.patches] == [amount for _, amount in found.shown(3)]
    assert f"{len(found.reasons) - 3} more" in "\n".join(described(figure))


def test_json_has_everything():
    found = explained()
    told = json.loads(json.dumps(found.to_dict()))
    amounts = [one["amount"] for reason in told["reasons"] for one in reason["contributions"]]
    assert math.fsum(amounts) == pytest.approx(told["difference"], abs=1e-12)
    assert told["label"] == found.label


# What is refused


def test_what_cannot_be_explained_is_reported():
    X, y = table(3)
    tree = HoeffdingTree(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="HoeffdingTree cannot explain: its scores are not sums"):
        tree.explain(X[0])
    learner = Banditron(random_state=0).fit(X, y)
    for words, chosen in {
        "label and against are both 1": {"label": 1, "against": 1},
        "unknown label 9": {"label": 9},
        "one label is on offer": {"among": [1]},
        "unknown label 8": {"among": [8]},
    }.items():
        with pytest.raises(ValueError, match=words):
            learner.explain(X[0], **chosen)
    assert learner.explain(X[0], among=[1], against=0).label == 1
    found = learner.explain(X[0], among=[0, 2])
    assert {found.label, found.against} == {0, 2}


def test_a_learner_that_has_not_started_has_no_reasons_yet():
    learner = OneBitClassifier(classes=["a", "b"])
    found = learner.explain([1.0, 2.0])
    assert found.difference == 0.0
    assert found.reasons == ()
    assert found.probabilities == (0.5, 0.5)
    assert "rather than" in str(found)
    assert not hasattr(learner, "classes_")


def test_cells_that_are_hashed_have_rows_enough():
    assert n_inputs(30) == 1 + 30 + CODES * 30 + MOST_CELLS
