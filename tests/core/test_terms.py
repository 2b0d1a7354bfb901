"""Worth, cost and limits: decisions, rounds, logs and files with them."""

import copy

import numpy as np
import pytest
from scipy.special import expit, log_softmax
from scipy.stats import chisquare

from onebit import (
    Decision,
    LinTS,
    LinUCB,
    LogisticThompson,
    Newtron,
    OneBitClassifier,
    SoftmaxThompson,
    load,
    make_pipeline,
    play,
)
from onebit.core.terms import (
    KNOWN_AFTER,
    WINDOW,
    Window,
    limit_exploration,
    new_labels_from_json,
    terms_from_json,
    window_from_json,
)
from onebit.evaluation import Log
from onebit.features import Records

LABELS = ["ash", "birch", "cedar", "elm"]
WORTH = {"ash": 1.0, "birch": 2.0, "cedar": 0.5}
COST = {"birch": 0.4, "elm": 0.05}
w, c = np.array([1.0, 2.0, 0.5, 1.0]), np.array([0.0, 0.4, 0.0, 0.05])


def stream(n, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    noisy = X @ rng.normal(size=(d, len(LABELS))) + rng.normal(size=(n, len(LABELS)))
    return X, np.array(LABELS)[noisy.argmax(axis=1)]


def learner(cls=OneBitClassifier, n=200, **parameters):
    X, y = stream(n)
    return cls(classes=LABELS, random_state=3, **parameters).fit(X, y)


def draws(trained, x):
    """Return means and deviations of what each label's value is drawn from."""
    run = trained._run
    trained.decide(x, explore=False)
    if isinstance(trained, LinTS):
        return run.scores.copy(), run.state.scratch.deviations.copy()
    means = log_softmax(run.scores) if trained.exclusive else run.scores.copy()
    if isinstance(trained, OneBitClassifier):
        deviations, posterior = run.state.mixture.deviations.copy(), run.state.line
    else:
        posterior = run.state.model.posterior
        deviations = posterior.scratch.deviations.copy()
    if not trained.exclusive and posterior.settings.explore < 1.0:
        b, narrow = int(np.argmax(w * expit(means) - c)), deviations.copy()
        for k in range(means.size):
            gain = min(max(w[k] - c[k] - (w[b] * expit(means[b]) - c[b]), 0.0) / w[k], 1.0)
            less_known = max(0.0, 1.0 - (narrow[b] / narrow[k]) ** 2)
            nu = posterior.settings.explore
            deviations[k] *= (nu + (1.0 - nu) * gain * less_known) / nu
    return means, deviations


def simulated(trained, x, n):
    """Return how often each label has the highest value, literally drawn."""
    m, d = draws(trained, x)
    rng, counts = np.random.default_rng(0), np.zeros(m.size)
    for _ in range(-(-n // 1_000_000)):
        t = m + d * rng.normal(size=(min(n, 1_000_000), m.size))
        P = np.exp(np.minimum(t, 0.0)) if trained.exclusive else expit(t)
        P = t if isinstance(trained, LinTS) else P
        counts += np.bincount((w * P - c).argmax(axis=1), minlength=m.size)
    return counts / counts.sum()


THOMPSONS = [
    (OneBitClassifier, {"explore": 1.0}),
    (OneBitClassifier, {"explore": 1.0, "views": "line"}),
    (SoftmaxThompson, {"explore": 1.0}),
    (SoftmaxThompson, {"explore": 0.5, "view": "cells"}),
    (LinTS, {}),
    (LogisticThompson, {"explore": 0.4, "view": "features", "covariance": "diagonal"}),
    (OneBitClassifier, {"explore": 1.0, "views": "line", "exclusive": False}),
]


@pytest.mark.parametrize(
    "n", [20_000, pytest.param(4_000_000, marks=pytest.mark.slow)], ids=["cheap", "exact"]
)
@pytest.mark.parametrize(("cls", "parameters"), THOMPSONS)
def test_probabilities_are_those_of_drawn_values(cls, parameters, n):
    trained, (X, _) = learner(cls, n=30, **parameters), stream(3, seed=5)
    for x in X:
        p = trained.policy(x[np.newaxis], worth=WORTH, cost=COST)[0]
        error = np.abs(p - simulated(trained, x, n))
        assert (error < np.maximum(5 * np.sqrt(p * (1.0 - p) / n), 1e-4)).all()
        assert n < 1_000_000 or error.max() < 1e-3


@pytest.mark.parametrize(("cls", "parameters"), THOMPSONS)
def test_frequencies_are_the_probabilities(cls, parameters):
    trained, (X, _) = learner(cls, n=30, **parameters), stream(1, seed=5)
    p = trained.policy(X, worth=WORTH, cost=COST)[0]
    found = trained.decide_many(np.tile(X, (2_000, 1)), worth=WORTH, cost=COST)
    counts = np.array([sum(d.label == label for d in found) for label in LABELS])
    assert chisquare(counts[p > 0], 2_000 * p[p > 0]).pvalue > 1e-6
    assert (counts[p == 0] == 0).all()


def test_without_exploration_the_highest_value_is_chosen():
    trained, (X, _) = learner(), stream(50, seed=1)
    best = (w * trained.predict_proba(X) - c).argmax(axis=1)
    for x, k in zip(X, best, strict=True):
        decision = trained.decide(x, worth=WORTH, cost=COST, explore=False)
        assert (decision.label, decision.probability) == (LABELS[k], 1.0)
    assert (trained.policy(X, explore=False).argmax(axis=1) == trained.scores(X).argmax(1)).all()
    greedy = learner(explore=0.0)
    p = greedy.policy(X, worth=WORTH, cost=COST)
    best = (w * greedy.predict_proba(X) - c).argmax(axis=1)
    np.testing.assert_array_equal(p, np.eye(4)[best])


def test_an_algorithm_explores_around_the_highest_value():
    trained, (X, _) = learner(Newtron, gamma=0.1), stream(20, seed=1)
    before, p = trained.policy(X), trained.policy(X, worth=WORTH, cost=COST)
    best = (w * trained.predict_proba(X) - c).argmax(axis=1)
    rows = np.arange(20)
    np.testing.assert_array_equal(p[rows, best], before[rows, before.argmax(axis=1)])
    np.testing.assert_array_equal(np.sort(p, axis=1), np.sort(before, axis=1))


def test_upper_confidence_bounds_of_values():
    trained, (X, _) = learner(LinUCB), stream(20, seed=1)
    for x in X:
        p = trained.policy(x[np.newaxis], worth=WORTH, cost=COST)[0]
        ends = trained._run.scores * 0 + trained.scores(x[np.newaxis])[0]
        ends += np.sqrt(trained._run.state.scratch.n)
        assert p.argmax() == (w * ends - c).argmax()
        assert p.max() == 1.0


def test_the_floor_holds_with_worth_and_cost():
    trained, (X, _) = learner(min_probability=0.02), stream(20, seed=1)
    p = trained.policy(X, worth=WORTH, cost=COST)
    assert p.min() >= 0.02
    p = trained.policy(X, ["ash", "elm"], worth=WORTH, cost=COST)
    assert (p[:, [1, 2]] == 0.0).all()
    assert p[:, [0, 3]].min() >= 0.02
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_terms_of_a_call_replace_those_of_the_learner():
    trained, (X, _) = learner(explore=1.0), stream(20, seed=1)
    both = trained.policy(X, worth=WORTH, cost=COST)
    trained.set_utility(worth=WORTH, cost={"ash": 7.0})
    np.testing.assert_array_equal(trained.policy(X, cost=COST), both)
    assert not np.array_equal(trained.policy(X), both)
    trained.set_utility(cost=COST)
    np.testing.assert_array_equal(trained.policy(X, worth=WORTH), both)
    trained.add_classes(["fir"])  # a label that is not mentioned
    assert trained.policy(X).shape == (20, 5)


def test_a_pipeline_takes_terms():
    router = make_pipeline(Records(n_features=64), OneBitClassifier(classes=LABELS))
    assert router.set_utility(cost=COST).set_limits(max_exploration=0.0) is router
    records = [{"text": "a tall tree"}]
    assert router.decide(records[0], worth=WORTH).probability == 1.0
    assert router.policy(records, worth=WORTH).max() == 1.0
    assert router.decide_many(records, explore=False)[0].probability == 1.0


def test_terms_set_before_the_first_round_are_saved(tmp_path):
    X, y = stream(60)
    new = OneBitClassifier(classes=LABELS, random_state=0).set_utility(worth=WORTH, cost=COST)
    new.set_limits(max_exploration=0.02)
    np.testing.assert_allclose(new.policy(X[:5]).sum(axis=1), 1.0)
    new.save(tmp_path / "new.safetensors")
    loaded = load(tmp_path / "new.safetensors")
    assert play(loaded, X, y).n_mistakes == play(new, X, y).n_mistakes
    np.testing.assert_array_equal(loaded.policy(X), new.policy(X))
    unknown = OneBitClassifier(classes=LABELS).set_utility(cost={"mauve": 1.0})
    with pytest.raises(ValueError, match=r"unknown label 'mauve'.*, in cost"):
        unknown.decide(X[0])
    assert unknown._run is None


def test_unsound_files_are_refused():
    wrong = {"worth": [["ash", -1.0]]}, {"cost": 3}, {"cost": [["ash"]]}, {"cost": [[[], 1]]}
    for terms in wrong:
        with pytest.raises(ValueError, match=r"worth|cost"):
            terms_from_json(terms)
    with pytest.raises(ValueError, match="max_exploration"):
        terms_from_json({"max_exploration": 2.0})
    for window in ({}, {"decisions": 3, "explored": [4]}, {"decisions": 3, "explored": [2, 1]}):
        with pytest.raises(ValueError, match="window"):
            window_from_json(window)


def test_replay_uses_the_policy_with_terms():
    X, y = stream(80)
    log_p = np.full(80, 0.25)
    labels = np.random.default_rng(0).choice(LABELS, 80)
    correct = (labels == y).astype(float)
    first = OneBitClassifier(classes=LABELS, random_state=0).set_utility(worth=WORTH, cost=COST)
    second = copy.deepcopy(first)
    chosen, taken = first.replay(X, labels, log_p, correct)
    assert taken.all()
    for i in range(80):
        assert chosen[i] == second.policy(X[i : i + 1])[0, LABELS.index(labels[i])]
        second.replay(X[i : i + 1], labels[i : i + 1], log_p[:1], correct[i : i + 1])
    limited = OneBitClassifier(classes=LABELS, random_state=0).set_limits(max_exploration=0.005)
    chosen, taken = limited.replay(X, labels, log_p, correct, bound=4.0, random_state=0)
    assert len(limited._run.window.explored) <= 5
    assert limited._run.window.decisions == taken.sum()


# Limits


def windows(explored):
    total = np.concatenate([[0], np.cumsum(explored)])
    return total[WINDOW:] - total[:-WINDOW]


@pytest.mark.parametrize("share", [0.0, 0.003, 0.05, 0.3])
def test_no_window_has_more_than_the_limit(share):
    """Whatever wants to explore: here each decision would, with probability 0.8."""
    rng, window, explored = np.random.default_rng(0), Window(), []
    for _ in range(10 * WINDOW):
        p = np.array([0.2, 0.5, 0.3])
        limit_exploration(p, 0, window.probability(share))
        assert p.sum() == pytest.approx(1.0)
        assert p[1] / max(p[2], 1e-300) == pytest.approx(5 / 3) or share == 0.0 or p[1] == 0.0
        explored.append(rng.random() >= p[0])
        window.append(explored[-1])
    assert windows(explored).max() <= share * WINDOW
    assert np.mean(explored) >= 0.9 * share - 0.001  # nor is less used without need


def test_the_limit_is_no_limit_where_little_is_explored():
    X, y = stream(1_500)
    free, limited = learner(n=5), learner(n=5).set_limits(max_exploration=0.5)
    np.testing.assert_array_equal(play(free, X, y).mistakes, play(limited, X, y).mistakes)


def test_a_limit_holds_over_files_copies_and_the_log(tmp_path):
    X, y = stream(2_600)
    limited = OneBitClassifier(classes=LABELS, random_state=0, min_probability=0.05)
    limited.set_limits(max_exploration=0.02)
    log, explored = Log(keeps_policy=True), []
    for i, lo in enumerate(range(0, 2_600, 650)):
        explored.append(play(limited, X[lo : lo + 650], y[lo : lo + 650], log=log).explored)
        if i == 0:
            limited.save(tmp_path / "limited.safetensors")
            limited = load(tmp_path / "limited.safetensors")
        else:
            limited = copy.deepcopy(limited)
    explored = np.concatenate(explored)
    assert 10 <= windows(explored).max() <= 20
    np.testing.assert_allclose(log.policy.sum(axis=1), 1.0)
    chosen = log.policy[np.arange(2_600), log.labels]
    np.testing.assert_array_equal(chosen, log.probabilities)
    # Decisions that may not explore are in the windows, too, and take no room.
    before = limited._run.window.count()
    limited.decide(X[0], explore=False)
    assert limited._run.window.count() <= before


# New labels


def with_new(cls=LinUCB, **parameters):
    """A learner that has just got a new label, and prefers it."""
    trained = learner(cls, **parameters).set_limits(max_new_share=0.05)
    return trained.add_classes(["fir"])


@pytest.mark.parametrize("share", [0.0, 0.004, 0.05, 1.0])
def test_no_window_has_more_of_a_new_label_than_its_share(share):
    """LinUCB would choose a label that it knows nothing of in most rounds; here it is never known.

    Of any 1,000 decisions, at most so many are for it, and hardly fewer.
    """
    trained, (X, _) = with_new(alpha=5.0), stream(2_500, seed=2)
    trained.set_limits(max_new_share=share)
    assert trained.policy(X[:200])[:, 4].max() <= min(1.0, share * round(share * WINDOW)) + 1e-12
    new = []
    for x in X:
        decision = trained.decide(x)
        new.append(decision.label == "fir")
        assert 0.0 < decision.probability <= 1.0
    assert windows(new).max() <= share * WINDOW
    assert np.mean(new) >= min(0.8 * share, 0.5)


def test_a_label_is_new_until_there_is_enough_feedback(tmp_path):
    trained, (X, _) = with_new().set_limits(max_new_share=0.005), stream(400, seed=2)
    new = {4: 0}
    for i, x in enumerate(X[: KNOWN_AFTER - 1]):
        assert trained._run.new_labels == new
        trained.learn(Decision(x, "fir", 0.5), correct=True)
        new = {4: i + 1}
    trained.learn(Decision(X[0], "ash", 0.5), correct=True)
    trained.save(tmp_path / "model")
    for one in (trained, copy.deepcopy(trained), load(tmp_path / "model")):
        assert one._run.new_labels == {4: KNOWN_AFTER - 1}
        assert one.policy(X)[:, 4].max() == 5 * 0.005
        one.learn(Decision(X[0], "fir", 0.5), correct=True)
        assert one._run.new_labels == {}
        assert one.policy(X)[:, 4].max() == 1.0


def test_all_that_teaches_of_a_new_label_counts():
    trained, (X, _) = with_new(), stream(60, seed=2)
    trained.teach(X[:10], ["fir"] * 10)
    trained.replay(X[:10], ["fir", "ash"] * 5, np.full(10, 0.5), np.ones(10))
    trained.learn_many([Decision(x, "fir", 0.5) for x in X[:7]], correct=[True] * 7)
    assert trained._run.new_labels == {4: 22}
    trained.set_limits()
    trained.replay(X[:10], ["fir", "ash"] * 5, np.full(10, 0.5), np.ones(10))
    assert trained._run.new_labels == {4: 27}
    trained.set_limits(max_new_share=0.1)
    history = play(trained, X, np.full(60, "fir"))
    assert trained._run.new_labels == {4: 27 + 60 - history.n_mistakes}


def test_both_limits_hold_together():
    trained, (X, y) = with_new(Newtron, gamma=0.5), stream(2_500, seed=2)
    trained.set_limits(max_exploration=0.05, max_new_share=0.01)
    log = Log(keeps_policy=True)
    history = play(trained, X, y, log=log)
    assert windows(history.explored).max() <= 50
    assert windows(log.labels == 4).max() <= 10 or not trained._run.new_labels
    np.testing.assert_allclose(log.policy.sum(axis=1), 1.0)
    np.testing.assert_array_equal(log.policy[np.arange(2_500), log.labels], log.probabilities)


def test_where_a_new_label_is_limited_the_decision_is_among_the_others():
    """Probabilities are those of a mixture: new labels at the limit, and a policy among others."""
    trained, (X, _) = with_new(SoftmaxThompson, explore=1.0), stream(30, seed=2)
    trained.set_limits(max_new_share=0.003)
    p = trained.policy(X, worth=WORTH, cost=COST)
    trained.set_limits()
    free = trained.policy(X, worth=WORTH, cost=COST)
    others = trained.policy(X, LABELS, worth=WORTH, cost=COST)
    is_limited = free[:, 4] > 0.009
    assert is_limited.any()
    np.testing.assert_array_equal(p[~is_limited], free[~is_limited])
    expected = np.c_[(1.0 - 0.009) * others[:, :4], np.full(30, 0.009)]
    np.testing.assert_allclose(p[is_limited], expected[is_limited], rtol=1e-12, atol=1e-15)


def test_unsound_new_labels_in_files_are_refused():
    window = {"decisions": 3, "explored": [1]}
    assert new_labels_from_json({"feedback": [[1, 5]], **window}, 2)[0] == {1: 5}
    for feedback in (None, [[2, 5]], [[1, 100]], [[1]], [["a", 5]], [[1, -1]]):
        with pytest.raises(ValueError, match="new_labels"):
            new_labels_from_json({"feedback": feedback, **window}, 2)
    with pytest.raises(ValueError, match="window"):
        new_labels_from_json({"feedback": []}, 2)
