"""The behaviours that every learner must have, as functions that raise AssertionError.

They need nothing but the learner, so every new learner can be checked, also outside onebit:

>>> from onebit import Banditron
>>> from onebit.checks import check_learner
>>> check_learner(Banditron())

scikit-learn's own `check_estimator` says what a classifier is, and is not repeated here. A learner
declares the checks that cannot hold for it, with the reason, in `Learner.exempt`.
"""

from __future__ import annotations

import copy
import json
import pickle
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from scipy.stats import chisquare
from sklearn.base import clone

from onebit.core import Decision, DecisionList, Learner, load, play
from onebit.core.storage import arrays_of

Check = Callable[[Learner], None]

LABELS = np.array(["blue", "green", "red"])


def check_learner(learner: Learner) -> None:
    """Run every check that applies to `learner`, which need not have started."""
    for check in checks_for(learner):
        check(learner)


def checks_for(learner: Learner) -> Iterator[Check]:
    """Yield the checks that `learner` does not declare itself exempt from."""
    unknown = learner.exempt.keys() - {check.__name__ for check in ALL_CHECKS}
    assert not unknown, (
        f"{type(learner).__name__} is exempt from checks that do not exist: {unknown}"
    )
    yield from (check for check in ALL_CHECKS if check.__name__ not in learner.exempt)


def check_describes_itself(learner: Learner) -> None:
    """It says what feedback it needs, who published it, what it costs and what is proven."""
    assert learner.feedback in ("bandit", "full")
    assert learner.reference
    assert learner.cost
    assert str(learner.bound)


def check_policy_is_a_distribution(learner: Learner) -> None:
    """Each row of `policy` is a probability distribution."""
    learner, X, _ = _trained(learner)
    p = learner.policy(X)
    assert p.shape == (X.shape[0], learner.classes_.size)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def check_policy_is_what_decide_samples(learner: Learner) -> None:
    """The labels of `decide` have the frequencies that `policy` says."""
    learner, X, _ = _trained(learner)
    x = X[3]
    p = learner.policy(X[[3]])[0]
    drawn = [learner.decide(x) for _ in range(2_000)]
    counts = np.array([sum(d.label == label for d in drawn) for label in learner.classes_])
    assert (counts[p == 0] == 0).all()
    if np.count_nonzero(p) > 1:
        assert chisquare(counts[p > 0], len(drawn) * p[p > 0]).pvalue > 1e-6
    for decision in drawn[:100]:
        assert decision.probability == p[learner.classes_.tolist().index(decision.label)]


def check_looking_changes_nothing(learner: Learner) -> None:
    """Nothing but `learn` changes a learner; `decide` only advances its random generator."""
    learner, X, _ = _trained(learner)
    before = _state(learner)
    learner.predict(X)
    learner.decision_function(X)
    learner.policy(X)
    _ = learner.coef_ if hasattr(learner, "coef_") else None
    _assert_same(before, _state(learner))
    learner.decide(X[0])
    after = _state(learner)
    before.pop("rng"), after.pop("rng")
    _assert_same(before, after)


def check_one_seed_one_history(learner: Learner) -> None:
    """One by one, in batches of any size or by `play`, rounds are identical to the last bit."""
    X, y = _stream(learner)
    played = _fresh(learner)
    history = play(played, X, y)
    one_by_one = _fresh(learner)
    for i, (x, truth) in enumerate(zip(X, y, strict=True)):
        decision = one_by_one.decide(x)
        greedy = one_by_one.predict(decision.x)[0]
        before = _state(one_by_one)
        _feed(one_by_one, decision, truth)
        assert history.mistakes[i] == (decision.label != truth)
        assert history.explored[i] == (decision.label != greedy)
        if not history.updated[i] and "W" in before:
            np.testing.assert_array_equal(before["W"], _state(one_by_one)["W"])
    _assert_same(_state(one_by_one), _state(played))
    for size in (1, 7, len(y)):
        batched = _fresh(learner)
        for lo in range(0, len(y), size):
            batched.partial_fit(X[lo : lo + size], y[lo : lo + size])
        _assert_same(_state(batched), _state(played))
    _assert_same(_state(_fresh(learner).fit(X, y)), _state(played))


def check_dense_and_sparse_agree(learner: Learner) -> None:
    """A sparse copy of a stream is the same stream, however its rows are stored."""
    X, y = _stream(learner)
    dense, sparse, single = _fresh(learner), _fresh(learner), _fresh(learner)
    expected = play(dense, X, y).mistakes
    X_csr = sp.csr_array(X)
    np.testing.assert_array_equal(play(sparse, not_canonical(X_csr), y).mistakes, expected)
    for i, truth in enumerate(y):
        assert _round(single, X_csr[[i]], truth) == expected[i]
    for other in (sparse, single):
        for name, value in _state(dense).items():
            np.testing.assert_allclose(_state(other)[name], value, rtol=1e-9, atol=1e-12)


def check_seed_decides(learner: Learner) -> None:
    """The same seed gives the same run; a learner without a seed still runs."""
    X, y = _stream(learner)
    first, second = _fresh(learner), _fresh(learner)
    np.testing.assert_array_equal(play(first, X, y).mistakes, play(second, X, y).mistakes)
    _assert_same(_state(first), _state(second))
    play(clone(learner).set_params(random_state=None), X, y)


def check_copies_are_independent(learner: Learner) -> None:
    """A copy continues as the original would, and does not affect the original."""
    learner, X, y = _trained(learner)
    before = _state(learner)
    for other in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        play(other, X, y)
        _assert_same(before, _state(learner))
        expected = copy.deepcopy(learner)
        play(expected, X, y)
        _assert_same(_state(expected), _state(other))


def check_saved_learner_goes_on(learner: Learner) -> None:
    """A saved and reloaded learner continues as if nothing had happened."""
    learner, X, y = _trained(learner)
    loaded = _saved(learner)
    assert type(loaded) is type(learner)
    np.testing.assert_array_equal(loaded.classes_, learner.classes_)
    _assert_same(_state(loaded), _state(learner))
    np.testing.assert_array_equal(play(loaded, X, y).mistakes, play(learner, X, y).mistakes)
    _assert_same(_state(loaded), _state(learner))
    learner.retire_classes(learner.classes_[:1])
    _message_of(lambda: learner.add_classes(["mauve"]))  # it may refuse
    loaded = _saved(learner)
    assert loaded.classes_.tolist() == learner.classes_.tolist()
    assert loaded.retired_classes_.tolist() == learner.retired_classes_.tolist()
    np.testing.assert_array_equal(loaded.policy(X), learner.policy(X))


def check_input_is_not_aliased(learner: Learner) -> None:
    """Changes to x between a decision and its feedback do not matter."""
    X, y = _stream(learner)
    expected, actual = _fresh(learner), _fresh(learner)
    for x, truth in zip(X[:50], y[:50], strict=True):
        _round(expected, x, truth)
        given = x.copy()
        decision = actual.decide(given)
        given[:] = np.nan
        _feed(actual, decision, truth)
    _assert_same(_state(expected), _state(actual))


def check_decision_teaches_once(learner: Learner) -> None:
    """Feedback for a decision already learned from is refused; another learner may use it."""
    learner, X, y = _trained(learner)
    other = copy.deepcopy(learner)
    decision = learner.decide(X[0])
    _feed(learner, decision, y[0])
    before = _state(learner)
    _assert_refused(lambda: _feed(learner, decision, y[0]), "already learned")
    _assert_same(before, _state(learner))
    _feed(other, decision, y[0])


def check_late_feedback(learner: Learner) -> None:
    """Feedback that is late and out of order is learned from, and so is a decision from a log."""
    X, y = _stream(learner)
    learner = _fresh(learner)
    pending = [(learner.decide(x), truth) for x, truth in zip(X, y, strict=True)]
    before = _state(learner)
    for decision, truth in reversed(pending):
        _feed(learner, decision, truth)
    after = _state(learner)
    assert any(not np.array_equal(before[name], after[name]) for name in before)
    logged = Decision(X[0], pending[0][0].label, 0.5)
    _feed(learner, logged, y[0])
    assert all(np.isfinite(value).all() for value in _state(learner).values())


def check_many_are_as_one_by_one(learner: Learner) -> None:
    """`decide_many` and `learn_many` do what `decide` and `learn` do, one after the other."""
    expected, X, y = _trained(learner)
    actual = copy.deepcopy(expected)
    theirs, ours = [expected.decide(x) for x in X[:20]], actual.decide_many(X[:20])
    for one, other in zip(theirs, ours, strict=True):
        _assert_alike(one, other)
    _assert_same(_state(expected), _state(actual))
    for decision, truth in zip(theirs, y, strict=False):
        _feed(expected, decision, truth)
    if learner.feedback == "full":
        actual.learn_many(ours, truth=y[:20])
    else:
        actual.learn_many(ours, correct=[d.label == t for d, t in zip(ours, y, strict=False)])
    _assert_same(_state(expected), _state(actual))


def check_decisions_outlive_the_process(learner: Learner) -> None:
    """A decision stored as JSON teaches as it would have, once, even a learner that was saved."""
    learner, X, y = _trained(learner)
    decision = learner.decide(X[0])
    text = json.dumps(decision.to_dict())
    again = [Decision.from_dict(json.loads(text)) for _ in range(3)]
    _assert_alike(decision, again[0])
    loaded = _saved(learner)
    _feed(learner, decision, y[0])
    _feed(loaded, again[0], y[0])
    _assert_same(_state(learner), _state(loaded))
    for other in (learner, loaded, _saved(loaded)):
        assert other.has_learned(str(decision.id))
        _assert_refused(partial(_feed, other, again[1], y[0]), "already learned")


def check_labels_come_and_go(learner: Learner) -> None:
    """A retired label is never chosen, and can come back; a new one is accepted or refused."""
    learner, X, _ = _trained(learner)
    late, scores = learner.decide(X[0]), learner.scores(X)
    learner.retire_classes([late.label])
    k = learner.classes_.tolist().index(late.label)
    before = _state(learner)
    _feed(learner, late, late.label)
    _assert_same(before, _state(learner))
    for other in (learner, copy.deepcopy(learner)):
        assert other.retired_classes_.tolist() == [late.label]
        assert (other.policy(X)[:, k] == 0.0).all()
        np.testing.assert_allclose(other.policy(X).sum(axis=1), 1.0, rtol=0, atol=1e-12)
        assert late.label not in other.predict(X)
        assert late.label not in {decision.label for decision in other.decide_many(X)}
        assert other.decide(X[1]).label != late.label
        refused = partial(other.decide, X[1], among=[late.label])
        _assert_refused(refused, f"{late.label!r}, in among, is retired")
    learner.add_classes([late.label])
    np.testing.assert_array_equal(learner.scores(X), scores)
    refusal = _message_of(lambda: learner.add_classes(["mauve"]))
    if refusal:
        assert f"{type(learner).__name__} cannot take further classes" in refusal
        return
    assert learner.classes_.tolist() == [*_labels(learner).tolist(), "mauve"]
    assert learner.policy(X).shape == (len(X), len(scores[0]) + 1)
    for x in X[:10]:
        _round(learner, x, "mauve")


def check_worth_and_cost(learner: Learner) -> None:
    """Worth and cost are refused, or decisions with them have the probabilities of the policy."""
    learner, X, y = _trained(learner)
    labels = learner.classes_.tolist()
    given: dict[str, Any] = {"worth": {labels[0]: 3.0}, "cost": {labels[1]: 0.5}}
    before = _state(learner)
    refusal = _message_of(lambda: learner.decide(X[0], **given))
    if refusal:
        assert "has no model of it" in refusal
        _assert_refused(partial(learner.set_utility, **given), "has no model of it")
        _assert_same(before, _state(learner))
        return
    p = learner.policy(X, **given)
    assert (p >= 0.0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    drawn = [learner.decide(X[3], **given) for _ in range(1_000)]
    counts = np.array([sum(d.label == label for d in drawn) for label in labels])
    assert (counts[p[3] == 0] == 0).all()
    if np.count_nonzero(p[3]) > 1:
        assert chisquare(counts[p[3] > 0], len(drawn) * p[3][p[3] > 0]).pvalue > 1e-6
    assert all(d.probability == p[3, labels.index(d.label)] for d in drawn)
    same: dict[str, Any] = {"worth": dict.fromkeys(labels, 2.0), "cost": dict.fromkeys(labels, 1)}
    np.testing.assert_array_equal(learner.policy(X, **same), learner.policy(X))
    before = _state(learner)
    for other in (learner.set_utility(**given), _copied(learner), copy.deepcopy(learner)):
        np.testing.assert_array_equal(other.policy(X), p)
        np.testing.assert_array_equal(other.policy(X, worth={}, cost={}), learner.policy(X, **same))
        _assert_same(before, _state(other))
    one_by_one, played = copy.deepcopy(learner), _copied(learner)
    history = play(played, X, y)
    for x, truth, mistake in zip(X, y, history.mistakes, strict=True):
        assert _round(one_by_one, x, truth) == mistake
    _assert_same(_state(one_by_one), _state(played))
    learner.retire_classes(labels[:1])
    among = labels[1:]
    for p in (learner.policy(X), learner.policy(X, among)):
        assert (p[:, 0] == 0.0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    for wrong, words in [
        ({"cost": {"mauve": 1.0}}, "unknown label 'mauve'"),
        ({"cost": 1.0}, "cost is a mapping"),
        ({"worth": {labels[0]: -1.0}}, "at least 0"),
        ({"worth": {labels[0]: np.nan}}, "finite"),
    ]:
        _assert_refused(partial(learner.decide, X[0], **cast("Any", wrong)), words)
        _assert_refused(partial(learner.set_utility, **cast("Any", wrong)), words)


def check_rewards(learner: Learner) -> None:
    """Rewards of 0 and 1 are bits; those between lie between, or are refused by name."""
    learner, X, y = _trained(learner)
    if learner.feedback == "full":
        _assert_refused(partial(learner.learn, learner.decide(X[0]), reward=1.0), "truth=")
        return
    told, paid = copy.deepcopy(learner), copy.deepcopy(learner)
    for x, truth in zip(X[:30], y[:30], strict=True):
        _round(told, x, truth)
        decision = paid.decide(x)
        paid.learn(decision, reward=float(decision.label == truth))
    _assert_same(_state(told), _state(paid))
    for wrong in (-0.1, 1.1, np.nan, True, "0.5"):
        _assert_refused(partial(paid.learn, paid.decide(X[0]), reward=wrong), "in [0, 1]")
    given: dict[str, Any] = {"correct": True, "reward": 0.5}
    _assert_refused(partial(paid.learn, paid.decide(X[0]), **given), "either correct")
    before, decision = _state(paid), paid.decide(X[0], explore=False)
    if not learner.takes_rewards:
        _assert_refused(partial(paid.learn, decision, reward=0.5), "takes_rewards")
        replayed = partial(paid.replay, X[:1], [decision.label], [1.0], reward=[0.5])
        _assert_refused(replayed, "an algorithm for bits")
        _assert_same({**before, "rng": _state(paid)["rng"]}, _state(paid))
        return
    for x in X[:20]:
        k = int(np.argmax(learner.scores(x[None])[0]))
        after = [_scores_after(learner, x, k, reward)[k] for reward in (0.0, 0.2, 0.7, 1.0)]
        if after[0] < after[-1] - 1e-3:  # a label that was sure teaches nothing if it is right
            assert after == sorted(after)
    rng = np.random.default_rng(0)
    rewards = rng.choice([0.0, 0.25, 0.5, 1.0], size=X.shape[0])
    one_by_one, many, replayed = (copy.deepcopy(learner) for _ in range(3))
    made = [Decision(x, label, 0.5) for x, label in zip(X, y, strict=True)]
    for x, label, reward in zip(X, y, rewards, strict=True):
        one_by_one.learn(Decision(x, label, 0.5), reward=reward)
    many.learn_many(made, reward=rewards)
    replayed.replay(X, y, np.full(len(y), 0.5), reward=rewards)
    for other in (many, replayed):
        _assert_same(_state(one_by_one), _state(other))
    goes_on = _copied(one_by_one)
    for one in (one_by_one, goes_on):
        one.learn(Decision(X[0], y[0], 0.5), reward=0.3)
    _assert_same(_state(one_by_one), _state(goes_on))


def check_exploration_has_limits(learner: Learner) -> None:
    """A decision that may not explore is the greedy label; a limit holds in every window."""
    learner, X, y = _trained(learner)
    before = _state(learner)
    for x in X[:20]:
        decision = learner.decide(x, explore=False)
        assert decision.probability == 1.0
        assert decision.label == learner.predict(decision.x)[0]
    _assert_same(before, _state(learner))
    assert (learner.policy(X, explore=False).max(axis=1) == 1.0).all()
    limited = _fresh(learner).set_limits(max_exploration=0.01)
    assert play(limited, X, y).n_explored <= 10
    one_by_one = _fresh(learner).set_limits(max_exploration=0.01)
    for x, truth in zip(X[:60], y[:60], strict=True):
        _round(one_by_one, x, truth)
    one_by_one = _copied(one_by_one)
    p = one_by_one.policy(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert (p.max(axis=1) >= 0.9 - 1e-12).all(), "of ten that are left, each allows 0.01"
    for x, truth in zip(X[60:], y[60:], strict=True):
        _round(one_by_one, x, truth)
    _assert_same(_state(one_by_one), _state(limited))
    _check_new_labels_are_limited(learner, X, y)
    unlimited = _fresh(learner).set_limits(max_exploration=1.0)
    assert play(unlimited, X, y).n_explored == play(_fresh(learner), X, y).n_explored
    _assert_refused(partial(limited.set_limits, max_exploration=1.5), "in [0, 1]")
    _assert_refused(partial(limited.decide, X[0], explore=cast("Any", 0)), "True or False")


def _check_new_labels_are_limited(learner: Learner, X: np.ndarray, y: np.ndarray) -> None:
    """A label that was added has at most its share, with the probabilities of the policy."""
    limited = copy.deepcopy(learner).set_limits(max_new_share=0.01)
    if _message_of(lambda: limited.add_classes(["mauve"])):
        return
    p, free = limited.policy(X), copy.deepcopy(limited).set_limits().policy(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(p[:, -1], np.minimum(free[:, -1], 0.1), rtol=0, atol=1e-12)
    assert (limited.policy(X, explore=False)[:, -1] == 0.0).all()
    assert limited.policy(X[:1], ["mauve"])[0, -1] == 1.0
    limited, chosen = _copied(limited), 0
    for x, truth in zip(X, y, strict=True):
        decision = limited.decide(x)
        chosen += decision.label == "mauve"
        _feed(limited, decision, truth)
    assert chosen <= 10
    _assert_refused(partial(limited.set_limits, max_new_share=-0.5), "in [0, 1]")


def check_bad_input_is_refused(learner: Learner) -> None:
    """Bad input gets an error that names the offender, and leaves the learner unchanged."""
    learner, X, y = _trained(learner)
    before = _state(learner)
    d, number = X.shape[1], cast("str", 7)
    not_a_number, infinite = X.copy(), X.copy()
    not_a_number[4, 2], infinite[5, 1] = np.nan, np.inf
    strange = y.astype(object)
    strange[6] = "mauve"
    decision = learner.decide(X[0])
    before["rng"] = _state(learner)["rng"]
    full = learner.feedback == "full"
    for refused, words in [
        (lambda: learner.partial_fit(not_a_number, y), "row 4 of X contains NaN"),
        (lambda: play(learner, sp.csr_array(infinite), y), "row 5 of X contains inf"),
        (lambda: learner.policy(not_a_number), "row 4 of X contains NaN"),
        (lambda: learner.decide(not_a_number[4]), "NaN, in feature 2"),
        (lambda: learner.decide(sp.csr_array(infinite)[[5]]), "inf), in feature 1"),
        (lambda: learner.partial_fit(X[:, 1:], y), f"{d - 1} features"),
        (lambda: learner.predict(X[:, 1:]), f"{d - 1} features"),
        (lambda: learner.decide(X[0, 1:]), f"{d - 1} features"),
        (lambda: learner.decide(X[:2]), "one example"),
        (lambda: learner.partial_fit(X, strange), "unknown label 'mauve'"),
        (lambda: learner.partial_fit(X, y[1:]), "inconsistent"),
        (lambda: learner.learn(decision, truth="mauve"), "unknown label 'mauve'"),
        (lambda: learner.learn(Decision(X[0], "mauve", 0.5), truth="red"), "unknown label 'mauve'"),
        (lambda: learner.learn(Decision(X[0], "red", 0.0), truth="red"), "probability"),
        (lambda: learner.learn(Decision(X[0], "red", 1.5), truth="red"), "probability"),
        (lambda: learner.learn(Decision(not_a_number[4], "red", 1.0), truth="red"), "NaN"),
        (lambda: learner.decide(X[0], id=number), "an id is a text"),
        (lambda: learner.decide(X[0], id="x" * 201), "an id is a text"),
        (lambda: learner.decide_many(not_a_number), "row 4 of X contains NaN"),
        (lambda: learner.decide_many(X, ids=["a"]), "ids is a list with one for each of 120"),
        (lambda: learner.decide_many(X, among=["mauve"]), "unknown label 'mauve'"),
        (lambda: learner.learn_many([decision], truth="red"), "truth is a list"),
        (lambda: learner.learn_many([decision], truth=["red", "red"]), "each of 1 decisions"),
        (lambda: learner.learn_many([decision] * 2, truth=[y[0]] * 2), "is twice among"),
        (
            lambda: learner.learn_many([decision, Decision(X[0], "mauve", 0.5)], truth=y[:2]),
            "unknown label 'mauve'",
        ),
        (
            lambda: learner.learn(Decision(X[0], "red", 1.0, id=number), truth=y[0]),
            "an id is a text",
        ),
        (lambda: learner.teach(X, strange), "unknown label 'mauve'"),
        (lambda: learner.add_classes(["blue"]), "'blue' is one of the classes already"),
        (lambda: learner.add_classes("mauve"), "got the text 'mauve'"),
        (lambda: learner.add_classes([]), "classes is empty"),
        (lambda: learner.retire_classes(["mauve"]), "unknown label 'mauve'"),
        (lambda: learner.retire_classes(_labels(learner)), "no label would be left"),
        (lambda: _fresh(learner).add_classes(["mauve"]), "has started"),
        (lambda: learner.decide(X[0], among=[]), "among is empty"),
        (lambda: learner.decide(X[0], among=["green", "mauve"]), "unknown label 'mauve'"),
        (lambda: learner.decide(X[0], among=["green", "blue", "green"]), "'green' twice"),
        (lambda: learner.decide(X[0], among="green"), "got the text 'green'"),
        (lambda: learner.policy(X, among=["mauve"]), "unknown label 'mauve'"),
        (
            lambda: learner.learn(Decision(X[0], "blue", 1.0, ("green",)), truth="green"),
            "'blue' of a decision is not in its among",
        ),
        (lambda: learner.learn(Decision(X[0], "blue", 1.0, ()), truth="green"), "among is empty"),
        (lambda: learner.learn(decision), "reward=... and truth=..."),
        (lambda: learner.learn(decision, correct=True, truth="red"), "reward=... and truth=..."),
        *([(lambda: learner.learn(decision, correct=True), "truth=...")] if full else []),
        (lambda: learner.partial_fit(X, y, classes=["blue", "red"]), "differ"),
        (lambda: _fresh(learner, classes=[]).fit(X, y), "at least two classes"),
        (lambda: _fresh(learner, classes=["red"]).decide(X[0]), "at least two classes"),
        (lambda: _fresh(learner).decide(X[0], among=["mauve"]), "unknown label 'mauve'"),
        (lambda: _fresh(learner, classes=None).decide(X[0]), "does not know its labels"),
        (lambda: _fresh(learner, classes=None).partial_fit(X, y), "does not know its labels"),
    ]:
        _assert_refused(refused, words)
        _assert_same(before, _state(learner))


def check_state_stays_the_same_size(learner: Learner) -> None:
    """Memory does not grow from the first round to the last of many."""
    learner, X, y = _trained(learner)
    before = {name: value.shape for name, value in _state(learner).items()}
    play(learner, np.tile(X, (5, 1)), np.tile(y, 5))
    assert before == {name: value.shape for name, value in _state(learner).items()}


def check_descriptions(learner: Learner) -> None:
    """Arrays and sparse rows describe labels equally, and files keep it; or all are refused."""
    X, y = _stream(learner)
    labels = _labels(learner).tolist()
    given = {label: X[y == label][0] for label in labels if (y == label).any()}
    one, other = _fresh(learner), _fresh(learner)
    if not learner.takes_descriptions:
        _assert_refused(lambda: one.describe(given), "takes no descriptions")
        assert not one._started
        return
    assert one.describe(given) is one
    other.describe({label: sp.csr_array(x[None]) for label, x in given.items()})
    _assert_same(_state(one), _state(other))
    before = _state(one)
    for wrong in ({}, {"mauve": X[0]}, {labels[0]: X[0, :3]}, {labels[0]: X[0] + np.nan}):
        assert _message_of(partial(one.describe, wrong)), f"{wrong} is refused"
    _assert_same(before, _state(one))
    play(one, X, y)
    saved = _saved(one)
    for again in (one, saved):
        play(again, X, y)
    _assert_same(_state(one), _state(saved))
    np.testing.assert_allclose(one.policy(X).sum(axis=1), 1.0)


def check_ranks(learner: Learner) -> None:
    """`rank` orders labels by their probability of being right, or by scores without one."""
    learner, X, _ = _trained(learner)
    before, labels = _state(learner), learner.classes_.tolist()
    probabilities = learner.right_proba(X[:5]) if hasattr(learner, "right_proba") else None
    for i, x in enumerate(X[:5]):
        ranked, scores = learner.rank(x), learner.scores(X[[i]])[0]
        order = [labels.index(one.label) for one in ranked]
        assert order == np.argsort(-scores, kind="stable").tolist()
        assert [one.score for one in ranked] == scores[order].tolist()
        assert ranked[0].label == learner.predict(X[[i]])[0]
        found = [one.probability for one in ranked if one.probability is not None]
        assert len(found) == (len(labels) if ranked[0].probability is not None else 0)
        if found:
            assert not learner.exclusive or abs(sum(found) - 1.0) < 1e-12
            assert found == sorted(found, reverse=True)
        if found and probabilities is not None:
            np.testing.assert_allclose(found, probabilities[i, order], rtol=1e-12)
        some = [one for one in ranked if one.label in labels[1:]]
        assert learner.rank(x, among=labels[1:]) == some
    _assert_same(before, _state(learner))
    learner.retire_classes(labels[:1])
    assert {one.label for one in learner.rank(X[0])} == set(labels[1:])
    _assert_refused(lambda: learner.rank(X[0], among=labels[:1]), "is retired")
    fresh = _fresh(learner)
    assert len(fresh.rank(X[0])) == len(labels)
    assert not fresh._started


def check_reasons_add_up(learner: Learner) -> None:
    """The reasons of `explain` add up to the difference of scores, or it says that none do."""
    learner, X, _ = _trained(learner)
    before, labels = _state(learner), learner.classes_.tolist()
    for i in (0, 1, 10):  # 10 is empty
        refusal = _message_of(partial(learner.explain, X[i]))
        if refusal:
            assert "its scores are not sums over features" in refusal
            continue
        scores = dict(zip(labels, learner.scores(X[[i]])[0].tolist(), strict=True))
        for given in ({}, {"label": labels[1]}, {"label": labels[0], "against": labels[-1]}):
            found = learner.explain(X[i], **given)
            difference = scores[found.label] - scores[found.against]
            amounts = [reason.amount for reason in found.reasons]
            assert abs(sum(amounts) - difference) <= 1e-9 * max(1.0, *map(abs, scores.values()))
            assert amounts == sorted(amounts, key=lambda amount: -abs(amount))
            assert found.label == given.get("label", learner.rank(X[i])[0].label)
    _assert_same(before, _state(learner))


def check_lists(learner: Learner) -> None:
    """Lists have the frequencies that their probabilities say, and each place teaches once."""
    learner, X, y = _trained(learner)
    labels, x = learner.classes_.tolist(), X[3]
    p = learner.policy(X[[3]])[0]
    lists = [learner.decide(x, top=2) for _ in range(1_000)]
    expected, counts = [], []
    for first, of_first in zip(labels, p, strict=True):
        left = [label for label in labels if label != first]
        given = learner.policy(X[[3]], among=left)[0]
        assert abs(given.sum() - 1.0) < 1e-12
        for second in left:
            probability = float(given[labels.index(second)])
            drawn = [one for one in lists if one.labels == (first, second)]
            assert all(one.probabilities == (of_first, probability) for one in drawn)
            expected.append(of_first * probability)
            counts.append(len(drawn))
    likely = np.array(expected) * len(lists) >= 5.0
    rare = ~likely
    cells = np.array([*np.array(counts)[likely], np.array(counts)[rare].sum()])
    means = np.array([*np.array(expected)[likely], np.array(expected)[rare].sum()]) * len(lists)
    if likely.sum() > 1:
        shown = means > 0.0
        assert (cells[~shown] == 0).all()
        assert chisquare(cells[shown], means[shown]).pvalue > 1e-6
    _check_learning_from_lists(learner, X, y)


def _check_learning_from_lists(learner: Learner, X: np.ndarray, y: np.ndarray) -> None:
    """Each place teaches as a decision among what was left would; a copy knows that."""
    labels = learner.classes_.tolist()
    chosen = learner.decide(X[0], top=len(labels) + 1, id="list")
    other = copy.deepcopy(learner)
    assert sorted(chosen.labels) == sorted(labels)
    assert chosen[-1].probability == 1.0
    again = DecisionList.from_dict(json.loads(json.dumps(chosen.to_dict())))
    if learner.feedback == "full":
        learner.learn(chosen, truth=y[0])
        other.learn(Decision(X[0], chosen.labels[0], chosen[0].probability), truth=y[0])
    else:
        learner.learn(chosen, taken=chosen.labels[1])
        for place, bit in zip(again[:2], (False, True), strict=True):
            other.learn(place, correct=bit)
    _assert_same(_state(learner), _state(other))
    copied = copy.deepcopy(learner)
    for one in (learner, copied):
        assert one.has_learned("list")
        assert one.has_learned(again)
        _assert_refused(partial(one.learn, again, truth=y[0]), "already learned")
    learner.retire_classes(labels[:1])
    assert labels[0] not in learner.decide(X[1], top=3).labels
    for top in (0, True, 1.5):
        refused = partial(learner.decide, X[1], top=top)
        _assert_refused(refused, "top is a number of places")
    _assert_refused(lambda: learner.learn(learner.decide(X[1], top=2)), "one of correct=...")


def check_ties_go_to_the_first_class(learner: Learner) -> None:
    """Where all scores are equal, the greedy label is the first class."""
    learner, X, _ = _trained(learner)
    nothing = np.zeros((1, X.shape[1]))
    _, scores, _ = learner._evaluate(nothing)
    assert np.ptp(scores) > 0 or learner.predict(nothing)[0] == LABELS[0]


ALL_CHECKS: list[Check] = [
    check
    for name, check in list(globals().items())
    if name.startswith("check_") and name != "check_learner"
]


def _stream(learner: Learner) -> tuple[np.ndarray, np.ndarray]:
    """Return 120 rounds of six features, with zeros and an empty row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6)) * (rng.random((120, 6)) < 0.7)
    X[10] = 0.0
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    labels = _labels(learner)
    return X, labels[np.argmax(X @ rng.normal(size=(6, labels.size)), axis=1)]


def _labels(learner: Learner) -> np.ndarray:
    """Return three labels, or two for a learner of two labels."""
    return LABELS if learner.__sklearn_tags__().classifier_tags.multi_class else LABELS[:2]


def _fresh(learner: Learner, **parameters: Any) -> Learner:
    return clone(learner).set_params(
        **{"classes": _labels(learner).tolist(), "random_state": 7, **parameters}
    )


def _trained(learner: Learner) -> tuple[Learner, np.ndarray, np.ndarray]:
    X, y = _stream(learner)
    return _fresh(learner).fit(X, y), X, y


def _saved(learner: Learner) -> Any:
    """Return a learner after it was saved and loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "learner.safetensors"
        learner.save(path)
        return load(path)


def _copied(learner: Learner) -> Any:
    """Return a copy of a learner: by a file, if it can be saved."""
    saves = "check_saved_learner_goes_on" not in learner.exempt
    return _saved(learner) if saves else copy.deepcopy(learner)


def _assert_alike(one: Decision, other: Decision) -> None:
    for name in ("label", "probability", "among", "confidence"):
        assert getattr(one, name) == getattr(other, name), name
    for a, b in zip(one.x, other.x, strict=True) if isinstance(other.x, tuple) else ():
        np.testing.assert_array_equal(a, b)


def _round(learner: Learner, x: Any, truth: Any) -> bool:
    decision = learner.decide(x)
    _feed(learner, decision, truth)
    return decision.label != truth


def _feed(learner: Learner, decision: Decision, truth: Any) -> None:
    if learner.feedback == "full":
        learner.learn(decision, truth=truth)
    else:
        learner.learn(decision, correct=decision.label == truth)


def not_canonical(X: sp.csr_array) -> sp.csr_array:
    """Return the same matrix with each value stored as two halves, features in reverse order."""
    coo = X.tocoo()
    order = np.lexsort((-coo.col, coo.row)).repeat(2)
    indptr = 2 * X.indptr
    return sp.csr_array((coo.data[order] / 2, coo.col[order], indptr), shape=X.shape)


def _scores_after(learner: Learner, x: np.ndarray, k: int, reward: float) -> np.ndarray:
    """Return the scores of x after its label k got a reward."""
    other = copy.deepcopy(learner)
    other.learn(Decision(x, other.classes_[k], 1.0), reward=reward)
    return other.scores(x[None])[0]


def _state(learner: Learner) -> dict[str, np.ndarray]:
    return {name: value.copy() for name, value in arrays_of(learner._run.state)}


def _assert_same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> None:
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def _assert_refused(call: Callable[[], Any], words: str) -> None:
    message = _message_of(call)
    assert words in message, f"expected an error that says {words!r}; got {message!r}"


def _message_of(call: Callable[[], Any]) -> str:
    """Return the message of a ValueError, or an empty one."""
    try:
        call()
    except ValueError as error:
        return str(error)
    return ""
