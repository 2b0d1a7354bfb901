"""The members of OneBitClassifier's mixture, and the weights that the bits give them."""

import json
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from mutations import packed, unpacked
from onebit import OneBitClassifier, load, play
from onebit.core.explanation import NEIGHBOURS
from onebit.numerics.bins import CODES, IS_NUMERIC, LEVELS, MOST_CELLS, n_inputs
from paths import assert_same_path
from references import one_bit_classifier as reference
from references import reasons


def mixed_columns(K, n=220, seed=0):
    """Levels, a numeric column, one with few values and a rare one, zeros, and empty rows."""
    rng = np.random.default_rng(seed + K)
    X = np.c_[
        rng.integers(3, size=n),
        4.0 * rng.normal(size=n),
        np.where(rng.random(n) < 0.03, rng.normal(size=n), rng.integers(4, size=n)),
        rng.normal(size=n) * (rng.random(n) < 0.5),
    ]
    X[rng.random(n) < 0.02] = 0.0
    y = (X[:, 0] + (X[:, 1] > 0) * (X[:, 3] > 0)).astype(int) % K
    return X, np.where(rng.random(n) < 0.1, rng.integers(K, size=n), y)


def walk(stream, K, storage=np.asarray, **form):
    X, y = stream(K)
    full = form.get("covariance", "full") == "full"
    given = {name: value for name, value in form.items() if name not in ("covariance",)}
    slow = reference.OneBitClassifier(X.shape[1], K, full, **given)
    learner = OneBitClassifier(covariance="full" if full else "diagonal", random_state=K, **given)
    trusted = []

    def every_round(slow, label, truth):
        weights = np.array([member.weight for member in learner.members_])
        trusted.append(np.abs(weights - slow.weights).max())

    assert_same_path(learner, slow, X, y, storage, every_round, quadrature=1e-6)
    assert max(trusted) < 1e-9
    found = learner._run.state.mixture.named.values()
    for member, expected in zip(found, slow.members, strict=True):
        np.testing.assert_allclose(member.posterior.W.T, expected.W, rtol=1e-8, atol=1e-9)
    return learner, slow


CELLS = {"views": "cells", "covariance": "diagonal"}
"""Cells in the form that other tests compile, too."""


@pytest.mark.parametrize(
    ("form", "K", "storage"),
    [
        pytest.param({"views": "products"}, 2, np.asarray, marks=pytest.mark.slow),
        ({"views": "products"}, 3, sp.csr_array),
        (CELLS, 3, np.asarray),
        pytest.param({"views": "cells"}, 3, np.asarray, marks=pytest.mark.slow),
    ],
)
def test_members_walk_the_path_of_the_reference(form, K, storage):
    learner, slow = walk(mixed_columns, K, storage, **form)
    X, _ = mixed_columns(K)
    for x in X[[0, 7, 100]]:
        assert_same_reasons(learner, slow, x)


def assert_same_reasons(learner, slow, x):
    """`explain` gives each feature, and each pair, what the reference gives it."""
    found = learner.explain(x)
    labels = learner.classes_.tolist()
    given = labels.index(found.label), labels.index(found.against)
    expected, difference, by_neighbours = reasons.explain(slow, x, *given)
    assert found.difference == pytest.approx(difference, abs=1e-7)
    amounts = {reason.columns: reason.amount for reason in found.reasons if not is_local(reason)}
    local = [reason.amount for reason in found.reasons if is_local(reason)]
    assert sum(local) == pytest.approx(by_neighbours, abs=1e-7)
    for columns, amount in expected.items():
        assert amounts.pop(columns, 0.0) == pytest.approx(amount, abs=1e-7), columns
    assert not amounts
    scores = learner.scores(x[None])[0]
    assert found.difference == pytest.approx(scores[given[0]] - scores[given[1]], abs=1e-9)
    assert sum(found.per_feature) + amounts_of_constant(found) == pytest.approx(found.difference)


def is_local(reason):
    return reason.contributions[0].input.kind == NEIGHBOURS


def amounts_of_constant(found):
    return sum(reason.amount for reason in found.reasons if not reason.columns)


@pytest.mark.slow
@pytest.mark.parametrize("explore", [0, 1.0])
def test_members_that_explore_otherwise_walk_the_path_of_the_reference(explore):
    walk(mixed_columns, 3, views="products", explore=explore)


def changing(K, n, back=None):
    """A cloud for each label; half way, all labels change places, and may change back."""
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=n)
    X = 4.0 * np.eye(K)[y] + rng.normal(size=(n, K))
    y[n // 2 : back] = (y[n // 2 : back] + 1) % K
    return X, y


def swapping(K, n):
    """The same, where only the first two labels change places."""
    X, y = changing(K, n, back=n // 2)
    late = np.arange(n) >= n // 2
    return X, np.where(late & (y < 2), 1 - y, y)


def test_members_change_together_as_in_the_reference():
    """At a change of everything all members begin anew, and all are trusted alike."""
    learner, slow = walk(partial(changing, n=600), 4, **CELLS)
    changes = [(change.round, change.label, change.returned) for change in learner.changes_]
    assert changes == slow.seen
    assert [label for _, label, _ in changes] == [None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (partial(changing, n=1_400, back=1_100), [(None, False), (None, True)]),
        (partial(swapping, n=1_400), [(0, False), (1, False)]),
    ],
)
def test_members_return_and_forget_labels_as_in_the_reference(stream, expected):
    learner, slow = walk(stream, 4, **CELLS)
    changes = [(change.round, change.label, change.returned) for change in learner.changes_]
    assert changes == slow.seen
    assert sorted(change[1:] for change in changes) == expected


def is_product(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def are_equal(n, seed=0):
    X = np.random.default_rng(seed).integers(10, size=(n, 4))
    return X.astype(float), (X[:, 0] == X[:, 1]).astype(int)


def is_linear(n, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, (X @ [1.0, -1.0, 0.5, 0.0] > 0).astype(int)


def trusted(learner):
    """How far each member is trusted beside the others that have a view of x."""
    weights = {member.name: member.weight for member in learner.members_}
    assert sum(weights.values()) == pytest.approx(1.0)
    rest = 1 - weights.pop("pairs") - weights.pop("neighbours")
    return {name: weight / rest for name, weight in weights.items()}


@pytest.mark.parametrize(
    ("stream", "name", "most"),
    [(is_product, "products", 0.1), (are_equal, "cells", 0.04), (is_linear, "line", 0.03)],
)
def test_the_member_that_sees_it_is_trusted(stream, name, most):
    X, y = stream(6_000)
    learner = OneBitClassifier(random_state=0)
    mistakes = play(learner, X, y).mistakes
    weights = trusted(learner)
    assert max(weights, key=weights.get) == name
    assert mistakes[3_000:].mean() < most


@pytest.mark.parametrize("unit", [1e-2, 1e-6, 1e6])
def test_units_of_columns_do_not_hide_products(unit):
    X, y = is_product(2_000)
    expected = play(OneBitClassifier(random_state=0), X, y).error_rate
    learner = OneBitClassifier(random_state=0)
    assert play(learner, unit * X, y).error_rate < expected + 0.02
    assert trusted(learner)["products"] > 0.9


def test_a_file_of_version_5_goes_on_as_the_learner_does(tmp_path):
    """Its scales had one sum of squares, and one count, for all features that stay as they are."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(600, 3)), 0.1 * (rng.random((600, 3)) < 0.3)]
    y = (X[:, 0] * X[:, 1] > 0) ^ (X[:, 3] > 0)
    learner = OneBitClassifier(random_state=0)
    play(learner, X[:300], y[:300])
    learner.save(tmp_path / "learner")
    text, arrays = unpacked((tmp_path / "learner").read_bytes())
    features, kinds, totals = (arrays[f"scales.{n}"] for n in ("features", "kinds", "totals"))
    words = np.arange(3, 6)
    sums = features[words, -1].sum(), kinds[words, 0].sum()
    before = arrays | {
        "scales.features": features[:, :-1],
        "scales.totals": np.insert(totals, 3, sums),
    }
    header = json.loads(text) | {"state_version": 5}
    (tmp_path / "before").write_bytes(packed(json.dumps(header), before))
    again = load(tmp_path / "before")
    assert again.members_ == learner.members_
    ends = [play(one, X[300:], y[300:]).mistakes.tolist() for one in (learner, again)]
    assert ends[0] == ends[1]


def test_trust_moves_when_the_world_does():
    """First the line says it all, then the product: the labels stay, and no one is told."""
    X, y = is_linear(3_000)
    learner = OneBitClassifier(random_state=0, notice_changes=False)
    play(learner, X, y)
    before = trusted(learner)
    play(learner, *is_product(6_000, seed=1))
    after = trusted(learner)
    assert before["line"] > 0.9
    assert after["line"] < 0.1


@pytest.mark.parametrize("views", ["cells", "products"])
def test_a_mixture_goes_on_after_it_was_saved(views, tmp_path):
    X, y = mixed_columns(3, 600)
    learner = OneBitClassifier(views=views, random_state=0, classes=range(3))
    play(learner, X[:300], y[:300])
    learner.save(tmp_path / "learner")
    again = load(tmp_path / "learner")
    assert again.members_ == learner.members_
    for one in (learner, again):
        one.add_classes([3])
    assert play(again, X[300:], y[300:]).mistakes.tolist() == (
        play(learner, X[300:], y[300:]).mistakes.tolist()
    )
    assert again.members_ == learner.members_


def test_more_labels_leave_the_views_as_they_are():
    learner = OneBitClassifier(classes=[0, 1], random_state=0)
    X, y = np.random.default_rng(0).normal(size=(50, 30)), np.arange(50) % 2
    play(learner, X, y)
    names = [member.name for member in learner.members_]
    learner.add_classes(range(2, 60))
    assert names == ["line", "cells", "products", "pairs", "neighbours"]
    names.remove("pairs")  # which are too many for sixty labels
    assert [member.name for member in learner.members_] == names
    play(learner, X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays["mixture.trust"].__setitem__(0, 0.9), "trust adds up"),
        (lambda arrays: arrays["mixture.trust"].__setitem__(0, np.nan), "trust"),
        (
            lambda arrays: arrays["mixture.members.cells.view_of_x.kinds"].__setitem__((0, 0), 99),
            "levels",
        ),
        (
            lambda arrays: arrays["mixture.members.cells.view_of_x.kinds"].__setitem__((0, 2), 7),
            "IS_NUMERIC",
        ),
        (
            lambda arrays: arrays["mixture.members.cells.view_of_x.edges"].__setitem__(
                (0, 0), np.inf
            ),
            "edges",
        ),
        (
            lambda arrays: arrays.update({"mixture.members.cells.view_of_x.stored": np.array(0)}),
            "stored",
        ),
        (
            lambda arrays: arrays.update({"mixture.members.cells.posterior.W": np.zeros((5, 3))}),
            "cells",
        ),
    ],
)
def test_files_with_members_that_no_rounds_lead_to_are_refused(change, message, tmp_path):
    X, y = mixed_columns(3)
    learner = OneBitClassifier(random_state=0).fit(X, y)
    learner.save(tmp_path / "learner")
    text, arrays = unpacked((tmp_path / "learner").read_bytes())
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays)
    (tmp_path / "changed").write_bytes(packed(text, arrays))
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "changed")


def test_views_need_scales():
    with pytest.raises(ValueError, match="views='cells' needs standardize=True"):
        OneBitClassifier(views="cells", standardize=False).fit(*mixed_columns(3))


def test_the_mixture_is_what_predict_and_policy_are_of():
    X, y = is_product(800)
    learner = OneBitClassifier(random_state=0).fit(X, y)
    p = learner.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(learner.policy(X).sum(axis=1), 1.0, rtol=1e-12)
    assert (learner.predict(X) == np.argmax(p, axis=1)).all()
    decision = learner.decide(X[0])
    assert decision.confidence == pytest.approx(p[0, decision.label])


def test_retired_labels_are_right_for_no_member():
    X, y = mixed_columns(3)
    learner = OneBitClassifier(random_state=0).fit(X, y)
    learner.retire_classes([1])
    assert (learner.predict_proba(X)[:, 1] == 0.0).all()
    assert (learner.policy(X)[:, 1] == 0.0).all()
    play(learner, X[y != 1], y[y != 1])
    assert np.isfinite(learner._run.state.mixture.members.cells.posterior.W).all()


def test_cells_of_many_columns_share_rows_of_one_table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    learner = OneBitClassifier(**CELLS, random_state=0).fit(X, y)
    cells = learner._run.state.mixture.members.cells.posterior
    assert len(cells.W) == n_inputs(40) == 1 + 40 + CODES * 40 + MOST_CELLS
    seen = learner._run.state.mixture.members.cells.view_of_x.scratch.indices
    assert seen.size == 1 + 80 + 40 * 39 // 2
    assert seen.max() < len(cells.W)
    assert len(np.unique(seen)) > 0.95 * seen.size
    again = OneBitClassifier(**CELLS, random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(
        again._run.state.mixture.members.cells.posterior.W, cells.W, rtol=1e-9, atol=1e-12
    )


def test_rare_values_leave_levels_as_they_are_and_many_make_a_column_numeric():
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(LEVELS - 5, size=1_000), rng.integers(LEVELS + 5, size=1_000)]
    X = np.where(rng.random((1_000, 2)) < 0.02, rng.normal(size=(1_000, 2)), X)
    learner = OneBitClassifier(**CELLS, random_state=0).fit(X, np.arange(1_000) % 2)
    assert learner._run.state.mixture.members.cells.view_of_x.kinds[:, IS_NUMERIC].tolist() == [
        0,
        1,
    ]


def test_bins_follow_a_column_that_only_grows():
    """Half of the sample is of the last half of the rounds, about, and the edges with it."""
    X = np.c_[np.arange(5_000.0), np.random.default_rng(0).normal(size=5_000)]
    learner = OneBitClassifier(**CELLS, random_state=0).fit(X, np.arange(5_000) % 2)
    clock, noise = learner._run.state.mixture.members.cells.view_of_x.edges
    assert clock[0] < 2_500.0 < clock[-1]
    np.testing.assert_allclose(noise[[1, 3, 5]], [-0.67, 0.0, 0.67], atol=0.35)
