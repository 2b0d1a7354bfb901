"""Within the limits of features, probabilities and parameters, what learners hold is finite."""

from numbers import Real

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

import onebit
from forms import FORMS, first_forms, n_classes
from onebit import Decision, play
from onebit.core.engine import PythonKernels
from onebit.core.example import LARGEST
from onebit.core.generator import LEAST_PROBABILITY
from onebit.core.learner import Learner
from onebit.core.storage import arrays_of
from problems import assert_finite

# A classifier of another library answers for its own arithmetic.
OURS = [form for form in FORMS if isinstance(getattr(form, "learner", None), Learner | None)]


def rows(kind, n=400, d=4):
    """Rows of one size, of many sizes, and the same one again and again."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    scale = {
        "usual": 1.0,
        "large": LARGEST,
        "tiny": 1e-300,
        "mixed features": 10.0 ** rng.uniform(-300, 30, size=(n, d)),
        "mixed rows": rng.choice([1e-30, 1.0, LARGEST], size=(n, 1)),
        "repeated": LARGEST,
    }[kind]
    return np.tile(scale * X[:1], (n, 1)) if kind == "repeated" else scale * X


KINDS = ["usual", "large", "tiny", "mixed features", "mixed rows", "repeated"]


def real_parameters(learner):
    """Yield the names of real parameters, with the ends of their ranges."""
    for name, constraints in learner._parameter_constraints.items():
        for range_ in constraints:
            if isinstance(range_, Interval) and range_.type is Real:
                inside = [end for end in (range_.left, range_.right) if end in range_]
                yield name, inside or [0.5]


def assert_stays_finite(learner, X, n_samples):
    """Play random labels and one label, then learn from decisions of any probability.

    Learners that sample have `n_samples` samples.
    """
    K = n_classes(learner)
    learner = clone(learner).set_params(classes=range(K), random_state=0)
    y = np.random.default_rng(1).integers(K, size=len(X))
    y[len(X) // 2 :] = 0
    if "n_samples" in learner.get_params():  # to renew samples takes long where losses are huge
        learner.set_params(n_samples=n_samples)
        X, y = X[::3], y[::3]
    try:
        learner.partial_fit(X[:1], y[:1])
    except ValueError as refused:
        if "theory" not in str(refused):  # which some parameters exclude
            raise
        return
    if isinstance(learner._run.kernels, PythonKernels):
        X, y = X[:: len(X) // 10], y[:: len(X) // 10]
    play(learner, X, y, record=False)
    assert_finite(learner, X[:20])
    for i, x in enumerate(X[:20:3]):
        for probability in (LEAST_PROBABILITY, 1.0):
            decision = Decision(x, i % K, probability)
            if learner.feedback == "full":
                learner.learn(decision, truth=i // 2 % K)
            else:
                learner.learn(decision, correct=i % 3 > 0)
            assert 0.0 < learner.decide(x).probability <= 1.0
    assert_finite(learner, X[:20])


thoroughly = pytest.mark.parametrize(
    "long", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["short", "long"]
)


@thoroughly
@first_forms(OURS)
def test_extreme_examples(learner, long):
    for kind in KINDS if long else ["mixed features", "large"]:
        assert_stays_finite(learner, rows(kind, n=400 if long else 60), 10 if long else 3)


@thoroughly
@first_forms(OURS)
def test_extreme_parameters(learner, long):
    """Each parameter at either end of its range, and all of them at ends drawn at random."""
    ranges = dict(real_parameters(learner))
    rng = np.random.default_rng(0)
    one = [{name: end} for name, ends in ranges.items() for end in ends]
    many = [
        {name: ends[rng.integers(len(ends))] for name, ends in ranges.items()}
        for _ in range(8 if long else 2)
    ]
    for parameters in one + many:
        for kind in ("usual", "large", "mixed features") if long else ("mixed features",):
            given = clone(learner).set_params(**parameters)
            assert_stays_finite(given, rows(kind, n=100 if long else 30), 10 if long else 3)


@first_forms()
def test_larger_examples_are_refused_by_name(learner):
    X = rows("usual", n=20)
    y = np.arange(20) % n_classes(learner)
    learner = clone(learner).set_params(random_state=0).fit(X, y)
    before = {name: array.copy() for name, array in arrays_of(learner._run.state)}
    for value, said in [(1e31, r"1e\+31"), (-1e155, r"-1e\+155"), (np.inf, "inf"), (np.nan, "NaN")]:
        X[4, 2] = value
        with pytest.raises(ValueError, match=rf"row 4 of X contains {said}.*, in feature 2"):
            learner.partial_fit(X, y)
        with pytest.raises(ValueError, match=rf"contains {said}.*, in feature 2"):
            learner.decide(X[4])
    for name, array in arrays_of(learner._run.state):
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("probability", [0.0, 1e-31, -0.5, 1.1, np.nan, np.inf])
def test_a_probability_too_small_to_divide_by_is_refused(probability):
    learner = onebit.Banditron(classes=[0, 1], random_state=0)
    with pytest.raises(ValueError, match=r"a decision's probability is in \[1e-30, 1\]; got"):
        learner.learn(Decision([1.0], 0, probability), correct=True)


@pytest.mark.parametrize(
    "parameters",
    [{"explore": 1e308}, {"a": 1e-320}, {"forgetting": 1000}, {"explore": np.inf}],
    ids=str,
)
def test_parameters_beyond_the_arithmetic_are_refused_by_name(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"The '{name}' parameter of OneBitClassifier"):
        onebit.OneBitClassifier(**parameters).fit(np.eye(3), [0, 1, 2])


FULL = [
    onebit.AROW(covariance="full"),
    onebit.Aioli(),
    onebit.Folklore(),
    onebit.Folklore(curvature="paper"),
    onebit.GaussianAggregating(n_nodes=10),
    onebit.Newtron(covariance="full"),
    onebit.OnlineNewton(),
    onebit.SOBA(covariance="full"),
    onebit.SecondOrderPerceptron(covariance="full"),
]


@pytest.mark.parametrize("seeds", [8, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("learner", FULL, ids=str)
def test_full_matrices_survive_rows_of_all_sizes(learner, seeds, tmp_path):
    """Rounding takes eigenvalues below zero; without care for that, they grew to -1e29."""
    K = n_classes(learner)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(80, 4)) * 10.0 ** rng.uniform(-40, 29, size=(80, 4))
        one = clone(learner).set_params(random_state=0).fit(X, np.arange(80) % K)
        one.save(tmp_path / "learner")
        again = onebit.load(tmp_path / "learner")
        assert_finite(again.partial_fit(X, np.arange(80) % K), X)


def test_kernels_of_tiny_examples_can_be_saved(tmp_path):
    X = np.array([[1e-155], [1.0], [1e-150], [0.0]])
    learner = onebit.KernelConfidit(kernel="linear", random_state=0).fit(X, [0, 1, 0, 1])
    learner.save(tmp_path / "learner")
    assert onebit.load(tmp_path / "learner").policy(X).tolist() == learner.policy(X).tolist()


def test_tiny_scales_of_weights_are_multiplied_out():
    """The length of W = scale V was lost where scale^2 was 0."""
    learner = onebit.Gaptron("hinge", "full", radius=None, random_state=0)
    X, y = rows("usual"), np.arange(400) % 3
    learner.fit(X, y)
    learner._run.state.W.scale[()] = 1e-190
    assert_finite(learner.partial_fit(X, y), X)
    assert learner._run.state.W.scale == 1.0


@pytest.mark.parametrize(
    "learner",
    [
        onebit.Newtron(random_state=0),
        onebit.BanditReduction(gamma=0.5, random_state=0),
        onebit.Folklore(),
        onebit.Aioli(),
    ],
    ids=str,
)
def test_ten_long_rows(learner):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.integers(2, size=200)
    learner = clone(learner).set_params(classes=[0, 1])
    with pytest.raises(ValueError, match="row 0 of X contains"):
        play(learner, 1e155 * X[:10], y[:10])
    play(learner, 1e29 * X[:10], y[:10])
    play(learner, X, y)
    assert_finite(learner, X)
