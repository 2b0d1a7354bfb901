"""Pairs and triples of columns: what they find, and when there are none."""

import json
import math

import numpy as np
import pytest

from mutations import packed, unpacked
from onebit import OneBitClassifier, load, play
from onebit.core.explanation import TRIPLE
from onebit.numerics.bins import n_cells, n_inputs, new_bins
from onebit.numerics.pairs import new_pairs


def genes(n, d=16, seed=0):
    """Columns of three levels; where the first two differ by one, the label is 1, mostly."""
    rng = np.random.default_rng(seed)
    X = rng.integers(3, size=(n, d)).astype(float)
    y = (X[:, 0] - X[:, 1]) % 3 == 1
    return X, np.where(rng.random(n) < 0.1, rng.random(n) < 0.5, y).astype(int)


def test_one_pair_among_many_is_found():
    X, y = genes(1_500)
    learner = OneBitClassifier(random_state=0)
    mistakes = play(learner, X, y).mistakes
    weights = {member.name: member.weight for member in learner.members_}
    assert weights["pairs"] > 0.9
    assert mistakes[-500:].mean() < 0.1
    pairs = learner._run.state.mixture.pairs
    assert pairs.trust.argmax() == 0
    assert pairs.trust[0] > 0.9
    reason = max(learner.explain(X[0]).reasons, key=lambda reason: abs(reason.amount))
    assert reason.columns == (0, 1)


@pytest.mark.parametrize("d", [8, 16])
def test_one_triple_among_many_is_found(d):
    """The parity of three columns, of which single columns and pairs tell nothing."""
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(1_500, d)).astype(float)
    y = X[:, :3].sum(axis=1).astype(int) % 2
    learner = OneBitClassifier(random_state=0)
    mistakes = play(learner, X, y).mistakes
    weights = {member.name: member.weight for member in learner.members_}
    assert weights["pairs"] > 0.9
    assert mistakes[-500:].mean() < 0.05
    trust = learner._run.state.mixture.pairs.trust
    assert trust.argmax() == d * (d - 1) // 2
    assert trust.max() > 0.9
    reason = max(learner.explain(X[0]).reasons, key=lambda reason: abs(reason.amount))
    assert reason.columns == (0, 1, 2)
    cell = tuple(f"= {value:g}" for value in X[0, :3])
    assert {(one.input.kind, one.input.cell) for one in reason.contributions} >= {(TRIPLE, cell)}


def test_bins_of_numeric_columns_are_coarser_in_triples():
    X = np.random.default_rng(0).random(size=(500, 3))
    learner = OneBitClassifier(random_state=0).fit(X, X[:, 0] > 0.5)
    x = np.array([0.99, 0.5, 0.01])
    reasons = learner.explain(x).reasons
    cells = {one.input.cell for reason in reasons for one in reason.contributions
             if one.input.kind == TRIPLE}  # fmt: skip
    edges = learner._run.state.mixture.members.cells.view_of_x.edges
    ((first, second, third),) = cells
    assert first == f"above {edges[0, 5]:.4g}"
    assert second in {f"{edges[1, i]:.4g} to {edges[1, i + 2]:.4g}" for i in (1, 3)}
    assert third == f"at most {edges[2, 1]:.4g}"


@pytest.mark.parametrize(
    ("d", "K", "n", "triples"),
    [
        (1, 2, 0, 0),
        (2, 2, 1, 0),
        (3, 2, 3, 1),
        (20, 2, 190, 1_140),
        (20, 3, 190, 0),
        (21, 2, 210, 0),
        (64, 4, 2_016, 0),
        (65, 2, 0, 0),
        (64, 5, 0, 0),
    ],
)
def test_pairs_and_triples_that_are_too_many_are_left_out(d, K, n, triples):
    pairs = new_pairs(d, K)
    assert pairs.trust.size == n + triples
    assert len(pairs.cells) == min(256 * n, 2**16) + min(4096 * triples, 2**15)
    assert pairs.trust.sum() == pytest.approx(float(n > 0))
    size = new_bins(d, K).scratch.indices.size
    assert size == 1 + 2 * d + d * (d - 1) // 2 + triples


def test_a_file_from_before_triples_says_the_same_of_labels(tmp_path):
    """Triples begin as in a new learner; what others say hardly changes."""
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(3, size=(600, 3)), rng.normal(size=(600, 2))].astype(float)
    y = (X[:, 0] == X[:, 1]).astype(int)
    learner = OneBitClassifier(random_state=0).fit(X, y)
    learner.save(tmp_path / "learner")
    text, arrays = unpacked((tmp_path / "learner").read_bytes())
    cells, pairs = "mixture.members.cells.posterior.", "mixture.pairs."
    n = {f"{cells}{name}": n_inputs(5) - 2**15 for name in ("W", "former", "S")}
    n |= {f"{pairs}cells": n_cells(5), f"{pairs}trust": 10}
    before = {name: array[: n.get(name)] for name, array in arrays.items()}
    before[f"{pairs}trust"] = before[f"{pairs}trust"] / before[f"{pairs}trust"].sum()
    header = json.loads(text) | {"state_version": 7}
    (tmp_path / "before").write_bytes(packed(json.dumps(header), before))
    again = load(tmp_path / "before")
    state, old = again._run.state.mixture, learner._run.state.mixture
    assert state.pairs.trust.size == 20
    assert state.pairs.trust.sum() == pytest.approx(1.0)
    assert (state.pairs.cells[n_cells(5) :] == 0.0).all()
    np.testing.assert_array_equal(state.pairs.cells[: n_cells(5)], old.pairs.cells[: n_cells(5)])
    new, was = state.members.cells.posterior, old.members.cells.posterior
    rows = n_inputs(5) - 2**15
    np.testing.assert_allclose(new.W[:rows], math.sqrt(1.25) * was.W[:rows])
    np.testing.assert_allclose(new.S[:rows], 1.25 * was.S[:rows])
    assert (new.W[rows:] == 0.0).all()
    assert (new.S[rows:] == was.settings.widest).all()
    assert again.score(X, y) > 0.9
    again.save(tmp_path / "again")
    assert load(tmp_path / "again").predict(X).tolist() == again.predict(X).tolist()


def test_each_round_counts_once_in_a_cell_of_each_pair_and_triple():
    """Whatever is said of a label: a bit, a grade or the truth, of labels old, new and retired."""
    rng = np.random.default_rng(0)
    learner = OneBitClassifier(classes=range(3), notice_changes=False, random_state=0)
    offered = [0, 1, 2]
    for t in range(300):
        if t == 100:
            learner.add_classes([3, 4])
            offered = [0, 1, 2, 3, 4]
        if t == 200:
            learner.retire_classes([1])
            offered = [0, 2, 3, 4]
        x = np.array([rng.normal(), 7.0, rng.choice([1e-30, 1e30, 0.0, -1e30]), rng.integers(3)])
        among = rng.choice(offered, size=1 + t % 3, replace=False).tolist() if t % 2 else None
        decision = learner.decide(x, among=among)
        feedback = [{"correct": t % 8 == 0}, {"reward": rng.random()}, {"truth": offered[t % 3]}]
        learner.learn(decision, **feedback[t % 3])
    counts = learner._run.state.mixture.pairs.cells.sum(axis=(0, 2))
    np.testing.assert_allclose(counts, 300 * (6 + 4))
    p = learner.predict_proba([x])[0]
    assert p[1] == 0.0
    assert p.sum() == pytest.approx(1.0)
