"""Every behaviour, of every learner and form found by introspection."""

import numpy as np
import pytest
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

import onebit
from forms import FORMS, LEARNERS, every_form, n_classes
from onebit import learners, play
from onebit.checks import check_labels_come_and_go, check_rewards, checks_for
from onebit.core.engine import PythonKernels
from onebit.core.templates import DRAW
from problems import assert_finite


def class_and_kernels(learner):
    """Return the class of a learner and, for the flagship, the kernels of this form of it.

    Other forms than the first are compared with their references and histories.txt every day.
    """
    if not isinstance(learner, onebit.OneBitClassifier):
        return type(learner), None
    learner = clone(learner)
    learner._start(np.arange(n_classes(learner)), 4)
    return type(learner), learner._run.kernels


def flagship_or_class(learner):
    """Return the form of the flagship, each tested daily, or the class of another learner."""
    return str(learner) if isinstance(learner, onebit.OneBitClassifier) else type(learner)


def forms_with_marks(key):
    """Yield the forms, each with its name and the marks of its tests: slow, if its key is known.

    A form whose key is None is slow, too.
    """
    seen = {None}
    for learner in FORMS:
        found = key(learner)
        yield learner, str(learner), [pytest.mark.slow] if found in seen else []
        seen.add(found)


def quickly_compiled(learner):
    """Return the class of a learner, if rewards need no kernels or those that compile soonest."""
    views = {"OneBitClassifier": "'standardize': False", "SoftmaxThompson": "'view': 'features'"}
    views |= {"LogisticThompson": "'view': 'features'", "Mixture": "'features'"}
    is_soon = not learner.takes_rewards or views.get(type(learner).__name__, "") in str(
        learner.get_params()
    )
    return type(learner) if is_soon else None


@pytest.mark.parametrize(
    ("learner", "check"),
    [
        pytest.param(learner, check, id=f"{name}-{check.__name__}", marks=marks)
        for (learner, name, usual), (*_, of_class), (*_, of_rewards) in zip(
            forms_with_marks(class_and_kernels),
            forms_with_marks(type),
            forms_with_marks(quickly_compiled),
            strict=True,
        )
        for check in checks_for(learner)
        for marks in [
            {check_labels_come_and_go: of_class, check_rewards: of_rewards}.get(check, usual)
        ]
    ],
)
def test_behaviour(learner, check):
    """Forms of the flagship with the same kernels differ in numbers only.

    Labels on offer and rewards take kernels of their own, which are compiled for one form of each
    learner.
    """
    check(learner)


@pytest.mark.parametrize(
    ("learner", "check"),
    [
        pytest.param(estimator, check, id=f"{name}-{check.func.__name__}", marks=marks)
        for learner, name, marks in forms_with_marks(type)
        for estimator, check in estimator_checks_generator(learner)
    ],
)
def test_scikit_learn_contract(learner, check):
    """The forms of a learner go through the same code of scikit-learn."""
    check(learner)


@pytest.mark.slow
@every_form
def test_policy_is_what_is_drawn(learner):
    """Many draws for the example whose label is least certain."""
    n = 100_000
    rng = np.random.default_rng(0)
    K = n_classes(learner)
    X, y = rng.normal(size=(40, 4)), rng.integers(K, size=40)
    learner = clone(learner).set_params(random_state=1, classes=range(K)).fit(X, y)
    policies = learner.policy(X)
    i = np.argmin(policies.max(axis=1))
    p, x = policies[i], learner.decide(X[i]).x
    decide = learner._run.kernels.decide(learner._run.state)
    offer, scores, p_of_x = learner._run.default_offer, learner._run.scores, learner._run.p
    drawn = [decide(learner._run.packed, x, scores, offer, p_of_x, DRAW)[0] for _ in range(n)]
    counts = np.bincount(drawn, minlength=K)
    assert (counts[p == 0] == 0).all()
    if np.count_nonzero(p) > 1:
        assert chisquare(counts[p > 0], n * p[p > 0]).pvalue > 1e-6


@pytest.mark.parametrize(
    ("learner", "n"),
    [
        pytest.param(
            learner, n, id=f"{name}-{n}", marks=marks if n == 10_000 else [pytest.mark.slow]
        )
        for learner, name, marks in forms_with_marks(flagship_or_class)
        for n in (10_000, 1_000_000)
    ],
)
def test_extreme_but_legal_values_stay_finite(learner, n):
    """Features of 1e-8 and 1e4, hardly any exploration, a large ball, over many rounds.

    Learners with Python kernels remember all their rounds, so that a million would take the square
    of that time, or call another library in each: they make 300. GaussianAggregating, whose round
    takes five times that of the next slowest, makes a tenth of the others.
    """
    learner = clone(learner)
    extremes = {"gamma": 1e-6, "radius": 1e3, "D": 1e3}
    numbers = {
        name: value
        for name, value in extremes.items()
        if name in learner.get_params() and isinstance(learner.get_params()[name], int | float)
    }
    K = n_classes(learner)
    learner.set_params(**numbers, random_state=0, classes=range(K))
    if isinstance(learner, onebit.GaussianAggregating):
        n //= 10
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * rng.choice([1e-8, 1.0, 1e4], size=(n, 3))
    y = np.argmax(X @ rng.normal(size=(3, K)), axis=1)
    learner.partial_fit(X[:1], y[:1])
    if isinstance(learner._run.kernels, PythonKernels):
        n = 300
    play(learner, X[:n], y[:n], record=False)
    assert_finite(learner, X[:100])


@pytest.mark.parametrize("cls", LEARNERS)
def test_out_of_range_parameters_are_refused_by_name(cls):
    for name in cls._parameter_constraints:
        if name in ("classes", "random_state"):
            continue
        learner = cls(classes=[0, 1]).set_params(**{name: object()})
        with pytest.raises(ValueError, match=f"'{name}' parameter of {cls.__name__}"):
            learner.decide([0.0])
        assert not hasattr(learner, "classes_")


def test_every_learner_is_a_public_name():
    assert set(learners.__all__) <= set(onebit.__all__)
    for cls in LEARNERS:
        assert getattr(onebit, cls.__name__) is cls


def test_feedback_is_fixed_when_a_learner_starts():
    learner = onebit.Gaptron(feedback="full", classes=[0, 1]).fit(np.eye(2), [0, 1])
    learner.set_params(feedback="bandit")
    with pytest.raises(ValueError, match="learns from the label itself"):
        learner.learn(learner.decide([1.0, 0.0]), correct=True)
