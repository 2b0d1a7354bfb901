"""Logs with rewards: files, formulas, and intervals that hold."""

import numpy as np
import pytest

from onebit import Banditron, LogisticThompson
from onebit.evaluation import (
    ConfidenceSequence,
    DifferenceSequence,
    Log,
    by_label,
    counterfactual,
    estimate,
    estimate_lists,
)
from onebit.evaluation.models import Softmax
from references import off_policy

K = 3


def graded_log(n=400, seed=0, missing=0.0):
    """Rewards that depend on x and label, from a mean in [0, 1]; and the mean of each label."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    means = 1 / (1 + np.exp(-x @ rng.normal(size=(2, K))))
    p = 0.7 * rng.dirichlet(np.ones(K), size=n) + 0.1
    labels = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=K - 1)
    chosen = means[np.arange(n), labels]
    bits = (rng.random(n) < chosen).astype(float)
    rewards = np.where(rng.random(n) < 0.5, rng.beta(2 * chosen, 2 * (1 - chosen)), bits)
    rewards[rng.random(n) < missing] = np.nan
    found = {"x": x, "classes": range(K), "policy": p}
    return Log(labels, p[np.arange(n), labels], reward=rewards, **found), means


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "dsjson"])
def test_files_keep_rewards(tmp_path, ending):
    log, _ = graded_log(60, missing=0.1)
    assert log.is_graded
    path = tmp_path / f"log.{ending}"
    log.write(path)
    again = Log.read(path, classes=range(K))
    np.testing.assert_array_equal(again.correct, log.correct)
    assert again.is_graded
    bits = log[log.correct == 1.0]
    assert not bits.is_graded
    bits.write(path)
    assert "reward" not in path.read_bytes().decode(errors="replace")


def test_values_are_those_of_the_formulas():
    log, _ = graded_log()
    policy = np.tile([0.2, 0.3, 0.5], (len(log), 1))
    given = policy.tolist(), log.labels.tolist(), log.probabilities.tolist(), log.correct.tolist()
    for method, formula in (("ips", off_policy.ips), ("snips", off_policy.snips)):
        found = estimate(log, lambda x: np.tile([0.2, 0.3, 0.5], (len(x), 1)), method)
        assert found.values[method] == pytest.approx(formula(*given), rel=1e-12)


@pytest.mark.parametrize("method", ["ips", "dr", "sndr"])
def test_intervals_hold_and_estimates_are_near(method):
    """In 40 logs, 95 % intervals of the mean reward of a label contain it."""
    held, errors = 0, []
    for seed in range(40):
        log, means = graded_log(300, seed)
        found = estimate(log, 1, method)
        held += found.low <= means[:, 1].mean() <= found.high
        errors.append(found.value - means[:, 1].mean())
    assert held >= 38
    assert abs(np.mean(errors)) < 4.0 * np.std(errors) / np.sqrt(40)


def test_a_model_of_rewards_is_one_of_their_means():
    """A reward moves the regression by the mean of what both bits do."""
    log, _ = graded_log(1)
    log.labels[:], moved = 1, []
    for reward in (0.0, 1.0, 0.6):
        model = Softmax(2, K)
        model.S += 1e6  # so that steps are linear in the gradient
        log.correct[:] = reward
        model.learn(log)
        moved.append(model.W.copy())
    wrong, right, between = moved
    np.testing.assert_allclose(between, 0.6 * right + 0.4 * wrong, rtol=1e-4)


def test_sequences_take_rewards():
    rng = np.random.default_rng(0)
    rewards, weights = rng.beta(2, 3, size=2_000), rng.choice([0.5, 1.5], size=2_000)
    watched = ConfidenceSequence()
    watched.update(rewards, weights)
    assert watched.low < 0.4 < watched.high
    assert watched.high - watched.low < 0.12
    first = rng.random(2_000) < 0.5
    means = np.where(first, 0.6, 0.4)
    compared = DifferenceSequence()
    compared.update(rng.beta(4 * means, 4 - 4 * means), 2.0 * first, 2.0 * ~first)
    assert compared.low < 0.2 < compared.high
    assert compared.is_better()
    with pytest.raises(ValueError, match=r"rewards in \[0, 1\]"):
        watched.update(1.2)


def test_learners_are_replayed_with_rewards():
    log, _ = graded_log(400)
    (found,) = counterfactual(log, LogisticThompson("features", "diagonal", random_state=0))
    assert 0.0 < found.low < found.value < found.high < 1.0
    with pytest.raises(ValueError, match="an algorithm for bits"):
        counterfactual(log, Banditron(random_state=0))
    shown = by_label(log)[0]
    assert shown.right == pytest.approx(log.correct[log.labels == 0].sum())
    assert shown.precision == pytest.approx(shown.right / shown.shown)


def test_what_is_refused():
    labels, p = ["a", "b"], [0.5, 0.5]
    for columns, words in (
        ({"reward": [0.5, 1.5]}, r"row 1: a reward is in \[0, 1\]"),
        ({"reward": ["much", 0.5]}, "row 0: reward is a number"),
        ({"correct": [True, None], "reward": [0.5, 0.5]}, "row 0: a row has either"),
        ({"reward": [0.5, None], "truth": ["a", None]}, "row 0: correct contradicts the truth"),
    ):
        with pytest.raises(ValueError, match=words):
            Log(labels, p, **columns)
    mixed = Log(labels, p, [None, False], reward=[0.25, None])
    assert mixed.correct.tolist() == [0.25, 0.0]
    with pytest.raises(ValueError, match="right or wrong"):
        estimate_lists(mixed)
