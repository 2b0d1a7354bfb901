"""Confidit: a second-order Perceptron that explores by upper confidence bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import LINEAR, Cost, Kernels, Learner, lean_kernel
from onebit.core.compiling import no_alias
from onebit.core.example import LARGEST, Example, Rows, count_rows
from onebit.core.generator import uniform
from onebit.core.ranges import NOT_NEGATIVE
from onebit.core.run import Run
from onebit.core.state import Amount, Count, Field, Generator, Variances, Weights, Within
from onebit.core.templates import RoundRecord
from onebit.numerics.exploration import upper_confidence
from onebit.numerics.linear import fill_unit, norm, products, squared_norm, with_values
from onebit.numerics.ridge import ridge_step
from onebit.numerics.second_order import (
    Inverse,
    fill_times,
    lean_class_inverse,
    new_inverses,
    quadratic,
)
from onebit.theory import bounds

LARGEST_NORM = 1e4
"""Full matrices get no x longer than this, times sqrt(a).

x' A_0^{-1} x is then at most 1e8, and rounding, of the order of 1e-16 of A_0^{-1}, stays below what
the rounds leave of it.
"""


class Confidence(NamedTuple):
    """How uncertain a score is: eps_i^2 = width n_i, with n_i = x' A_i^{-1} x.

    Attributes
    ----------
    width
        2 eta_t of the theory, or a constant.
    terms
        Sum of x_s' A_s^{-1} x_s.
    squares
        Sum of ||x_s||^2.
    Q
        Sum of the approximation errors q_s.
    rounds
        t - 1.
    q
        Approximation errors from round `passed` + 1 on; the last one holds for all later rounds.
    passed
        Number of rounds before the first of `q`.
    theory
        Whether the width follows the theory.
    a
        A_0 = a I.
    rho
        (1 + alpha)^2.
    norm, delta
        Parameters of the learner.
    """

    width: Amount
    terms: Amount
    squares: Amount
    Q: Amount
    rounds: Count
    q: Annotated[np.ndarray, Field("errors", least=0.0)]
    passed: int
    theory: bool
    a: float
    rho: float
    norm: float
    delta: float


class Scratch(NamedTuple):
    """n_i, and tau, the multipliers of the projection."""

    n: np.ndarray
    tau: np.ndarray


class LinearScratch(NamedTuple):
    """What `score` computes of x.

    Attributes
    ----------
    n
        n_i = x' A_i^{-1} x.
    tau
        The multipliers of the projection.
    x
        The values of x, normalised if wanted.
    squares
        Their squares.
    v
        Room for A_i^{-1} x.
    """

    n: np.ndarray
    tau: np.ndarray
    x: np.ndarray
    squares: np.ndarray
    v: np.ndarray


class DiagonalState(NamedTuple):
    """Weights, with the diagonal of A_i for each class.

    Attributes
    ----------
    W
        Weights.
    A_inv
        1 / A_i, one number for each weight.
    alpha
        Parameter of the noise model.
    normalize
        Whether examples are normalised.
    confidence
        How uncertain the scores are.
    """

    W: Weights
    A_inv: Variances
    alpha: float
    normalize: bool
    confidence: Confidence
    rng: Generator
    scratch: LinearScratch


class FullState(NamedTuple):
    """Weights, with the inverse of A_i for each class; the rest is as in `DiagonalState`."""

    W: Weights
    A_inv: Annotated[Inverse, Within(n="features", each="classes")]
    alpha: float
    normalize: bool
    confidence: Confidence
    rng: Generator
    scratch: LinearScratch


@lean_kernel
def theory_width(confidence):
    """2 eta_t of step 4, with the approximation errors of (10)."""
    t = confidence.rounds[()] + 1
    return confidence.a * confidence.norm * confidence.norm + confidence.rho * (
        confidence.terms[()]
        + 2.0 * confidence.Q[()]
        + 18.0 * (math.log(t + 4) - math.log(confidence.delta))
    )


@lean_kernel
def end_round(confidence, term, square):
    """Set the width for the next round; `term` is x' A^{-1} x after the update of A."""
    q, t = confidence.q, confidence.rounds[()] + 1
    confidence.terms[()] += term
    confidence.squares[()] += square
    confidence.Q[()] += q[min(t - confidence.passed, q.size) - 1]
    confidence.rounds[()] = t
    if confidence.theory:
        confidence.width[()] = theory_width(confidence)


@lean_kernel
def multipliers(D, n, alpha, tau):
    """Fill tau such that w_i + tau_i A_i^{-1} x is the projection of step 2 (Section 3.1).

    tau_i is lambda, or what lifts D_i to -alpha if that is more, so that the new scores max(-alpha,
    D_i + lambda n_i) have the sum 1 + alpha - K alpha. The lambda that gives the scores D_i +
    lambda n_i this sum is too large if some of them are below -alpha; without those classes it is
    smaller, which may leave more classes below, and so on until none is. Where x = 0 no weights can
    have such scores, and none move.
    """
    if n[0] == 0.0:
        tau[:] = 0.0
        return
    lam = math.inf
    while True:
        left, weight = 1.0 + alpha, 0.0
        for i in range(D.size):
            if alpha + D[i] + lam * n[i] > 0.0:
                left -= alpha + D[i]
                weight += n[i]
        if weight == 0.0 or left / weight >= lam:
            break
        lam = left / weight
    for i in range(D.size):
        tau[i] = max(lam, -(alpha + D[i]) / n[i])


@lean_kernel
def sign(alpha, rng, correct):
    """Figure 1, steps 6-7: the beta of X_t = beta x_t. With alpha = 1 nothing is drawn."""
    if correct or (alpha < 1.0 and uniform(rng) >= (1.0 + alpha) / 2.0):
        return 1.0
    return -1.0


@lean_kernel
def instance(state, x):
    """Figure 1, step 1: return x, normalised if wanted; its squares are in the scratch too."""
    scratch = state.scratch
    if state.normalize:
        fill_unit(x, scratch.x, scratch.squares)
    else:
        for i in range(x.values.size):
            scratch.x[i] = x.values[i]
            scratch.squares[i] = x.values[i] * x.values[i]
    return with_values(x, scratch.x)


@lean_kernel
def score_diagonal(state, x, scores):
    """Figure 1, step 3: the scores w_i . x, and n_i = x' A_i^{-1} x for later steps."""
    products(state.W, instance(state, x), scores)
    products(state.A_inv, with_values(x, state.scratch.squares), state.scratch.n)


@lean_kernel
def score_full(state, x, scores):
    """Figure 1, step 3: the scores w_i . x, and n_i = x' A_i^{-1} x for later steps."""
    x, n = instance(state, x), state.scratch.n
    if not state.normalize:
        shorten(x, LARGEST_NORM * math.sqrt(state.confidence.a))
    products(state.W, x, scores)
    for k in range(n.size):
        n[k] = bounded_below(state.confidence, x, quadratic(lean_class_inverse(state.A_inv, k), x))


@lean_kernel
def shorten(x, longest):
    """Scale x in place to a length of at most `longest`."""
    size = norm(x)
    if size > longest:
        for i in range(x.values.size):
            x.values[i] *= longest / size


@lean_kernel
def bounded_below(confidence, x, n):
    """Return n_i, kept above its lower bound: no eigenvalue of A_i exceeds a + sum ||x_s||^2."""
    return max(n, squared_norm(x) / (confidence.a + confidence.squares[()]))


@lean_kernel
def project_scores(state, scores):
    """Figure 1, step 2; the weights follow in `learn`."""
    scratch = state.scratch
    multipliers(scores, scratch.n, state.alpha, scratch.tau)
    for k in range(scores.size):
        scores[k] += scratch.tau[k] * scratch.n[k]


@lean_kernel
def score_projected_diagonal(state, x, scores):
    """Figure 1, steps 2-3."""
    score_diagonal(state, x, scores)
    project_scores(state, scores)


@lean_kernel
def score_projected_full(state, x, scores):
    """Figure 1, steps 2-3."""
    score_full(state, x, scores)
    project_scores(state, scores)


@lean_kernel
def policy(state, x, scores, offer, p):
    """Figure 1, step 4."""
    return upper_confidence(scores, state.scratch.n, state.confidence.width[()], offer, p)


@lean_kernel
def learn_diagonal(state, x, scores, label, probability, offer, correct):
    """Figure 1, steps 6-8, with only the diagonal of A."""
    W, A_inv = state.W, state.A_inv
    beta = sign(state.alpha, state.rng, correct)
    term = square = 0.0
    for i in range(x.indices.size):
        j, x_j = x.indices[i], state.scratch.x[i]
        # A + x^2 makes 1 / A shrink by r, and (A w + beta x) / A is then r (w + beta x / A).
        r = 1.0 / (1.0 + x_j * x_j * A_inv[j, label])
        W[j, label] = r * (W[j, label] + beta * x_j * A_inv[j, label])
        A_inv[j, label] *= r
        term += x_j * x_j * A_inv[j, label]
        square += x_j * x_j
    end_round(state.confidence, term, square)
    return True


@lean_kernel
def learn_full(state, x, scores, label, probability, offer, correct):
    """Figure 1, steps 6-8. By Sherman and Morrison, A_t^{-1} x = A_{t-1}^{-1} x / (1 + n)."""
    A_inv, v, n = lean_class_inverse(state.A_inv, label), state.scratch.v, state.scratch.n[label]
    beta = sign(state.alpha, state.rng, correct)
    x = with_values(x, state.scratch.x)
    fill_times(A_inv, x, v)
    ridge_step(state.W, A_inv, label, v, n, beta - scores[label])
    end_round(state.confidence, n / (1.0 + n), squared_norm(x))
    return True


@lean_kernel
def learn_projected_diagonal(state, x, scores, label, probability, offer, correct):
    """Figure 1, steps 2 and 6-8: the projection moves the weights of all classes."""
    no_alias()
    W, A_inv, tau = state.W, state.A_inv, state.scratch.tau
    for i in range(x.indices.size):
        j, x_j = x.indices[i], state.scratch.x[i]
        for k in range(tau.size):
            W[j, k] += tau[k] * x_j * A_inv[j, k]
    return learn_diagonal(state, x, scores, label, probability, offer, correct)


@lean_kernel
def learn_projected_full(state, x, scores, label, probability, offer, correct):
    """Figure 1, steps 2 and 6-8: the projection moves the weights of all classes."""
    used, v, tau = with_values(x, state.scratch.x), state.scratch.v, state.scratch.tau
    for k in range(tau.size):
        if tau[k] != 0.0:  # weights that do not move, as where x = 0, cost nothing
            fill_times(lean_class_inverse(state.A_inv, k), used, v)
            for j in range(v.size):
                state.W[j, k] += tau[k] * v[j]
    return learn_full(state, x, scores, label, probability, offer, correct)


DIAGONAL = Kernels("diagonal", score_diagonal, policy, learn_diagonal)
FULL = Kernels("full", score_full, policy, learn_full)
PROJECTED_DIAGONAL = Kernels(
    "projected_diagonal", score_projected_diagonal, policy, learn_projected_diagonal
)
PROJECTED_FULL = Kernels("projected_full", score_projected_full, policy, learn_projected_full)


class ConfidenceLearner(Learner):
    """A learner with Confidit's intervals, whose approximation errors may be a function of t."""

    state_version = 1

    def _migrate(self, version: int, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        # Examples of version 0 were normalised: their squared lengths are at most one.
        return {**arrays, "confidence.squares": arrays["confidence.rounds"].astype(np.float64)}

    def _rounds(self, run: Run, rows: Rows, truth: np.ndarray, *given: Any) -> Iterator[np.ndarray]:
        with run.lock:  # errors of later rounds are raised before the first is played
            _extend_approximation_errors(run, truth.size)
        yield from super()._rounds(run, rows, truth, *given)

    def _play(
        self, run: Run, rows: Rows, truth: np.ndarray, recorded: RoundRecord | None = None
    ) -> np.ndarray:
        _extend_approximation_errors(run, truth.size)
        return super()._play(run, rows, truth, recorded)

    def _replay(self, run: Run, rows: Rows, *logged: Any) -> None:
        _extend_approximation_errors(run, count_rows(rows))
        super()._replay(run, rows, *logged)

    def _update(self, run: Run, *lesson: Any) -> Any:
        _extend_approximation_errors(run, 1)
        return super()._update(run, *lesson)


def _extend_approximation_errors(run: Run, n_rounds: int) -> None:
    """Compute the approximation errors of the next rounds, as kernels cannot call Python."""
    given = run.parameters["approximation_error"]
    if callable(given):
        confidence = run.state.confidence
        passed = int(confidence.rounds)
        if passed + n_rounds <= confidence.passed + confidence.q.size:
            return
        q = _approximation_errors(given, passed, n_rounds)
        run.state = run.state._replace(confidence=confidence._replace(q=q, passed=passed))


class Confidit(ConfidenceLearner):
    """Confidit: it chooses the label with the highest upper confidence bound on its score.

    To the score of each class it adds the width of a confidence interval, which is wide where that
    label was chosen for few similar examples, and shrinks as it is chosen more often. So it
    explores where there is something to find out, deterministically, and less and less. Only the
    chosen class learns: by a second-order Perceptron's update towards +1 if it was right, -1 if
    not.

    The authors' five versions (their Table 2) are

    ======= ============ ============ ============
    version `projection` `confidence` `covariance`
    ======= ============ ============ ============
    1       True         "theory"     "full"
    2       False        "constant"   "full"
    3       False        "theory"     "full"
    4       True         "constant"   "full"
    5       False        "constant"   "diagonal"
    ======= ============ ============ ============

    Version 1 is the one with a proof. In their experiments the labels do not follow the noise
    model, and the projection and the wide intervals of the theory only cost mistakes; version 2
    does best, and version 5, the default here, is what they use on real data. The other
    combinations work too.

    Parameters
    ----------
    eta : float >= 0, default=1.0
        With confidence="constant", the squared width of an interval, as a multiple of x' A^{-1} x
        (equation 11). The authors try 10^-3 to 10^3 and find that it matters little.
    alpha : float in [-0.999, 1], default=1.0
        The noise model: label i has probability (alpha + u_i . x) / (alpha + 1). After a mistake
        the class is demoted with probability (1 + alpha) / 2, else promoted. The theory is for
        alpha >= 0; the authors' experiments use 1, where the update is deterministic.
    confidence : {"constant", "theory"}, default="constant"
        Whether the intervals follow equation 11, from `eta`, or equation 9, from `norm` and
        `delta`.
    projection : bool, default=False
        Whether the weights are moved in every round so that the scores fit the noise model: none
        below -alpha, and their sum 1 + alpha - K alpha, over all labels, on offer or not.
    covariance : {"diagonal", "full"}, default="diagonal"
        "full" keeps a matrix of d^2 numbers for each class, "diagonal" d numbers.
    norm : float >= 0, default=1.0
        With confidence="theory", a bound on the norm ||U|| of the true weights of all classes.
    delta : float in (0, 1), default=0.05
        With confidence="theory", the probability with which the bound may fail.
    a : float >= 1e-6 or "theory", default="theory"
        The matrices begin as A_0 = a I; "theory" is (1 + alpha)^2, as in the paper's algorithm.
    normalize : bool, default=True
        Whether examples are divided by their norm, as the theory assumes; the authors' experiments
        are on bags of words of zeros and ones, whose norms differ. If not, full matrices shorten
        examples of norm above 10^4 sqrt(a): beyond that, rounding hides all later rounds.
    approximation_error : float, array-like or callable, optional
        With confidence="theory", for labels that deviate from the noise model: Modified Confidit,
        with the intervals of equation 10. Bounds on q_1, q_2, ..., where q_t is the largest
        difference in round t between a label's probability and the model's. A number, or the last
        of a sequence, is the bound for all later rounds; a function is called with t = 1, 2, ...,
        and such a learner cannot be saved to a file. The regret bound is meaningful only if their
        sum is o(T).
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the updates after mistakes, if alpha < 1.

    Notes
    -----
    The paper assumes examples of unit length "for simplicity", so by default the learner normalises
    each; an example of zeros stays as it is, and `coef_` are the weights for normalised examples.
    A_0 = 4 I, its value for alpha = 1, then outweighs hundreds of documents: the intervals hardly
    shrink, and some labels are never chosen. The published errors on texts are reproduced with
    normalize=False, a=1 and ten epochs (`onebit lab run confidit`).

    The proof needs neither unit length nor A_0 = (1 + alpha)^2 I. With A_0 = a I, the first term of
    (9) is d_0(U, 0) = a ||U||^2 / 2, as here; with ||x|| <= X, x' A^{-1} x is at most X^2 / a in
    (17), and `bounds.confidit` has both.

    The greedy label is the one with the highest score, after the projection if there is one; a
    round explores if the confidence bounds lead to another label. `decision_function` leaves the
    confidence widths out, as in the authors' tests on held-out data.

    To find the multiplier of the projection, the paper's sketch takes the first r that fits, in
    decreasing order of (alpha + D_i) / n_i; the solution is the last one, and here it is found
    without sorting. Its equation 12 has (1 + alpha^2) I for A_0, which is (1 + alpha)^2 I elsewhere
    in the paper and here. The paper allows alpha down to -1, where A_0 vanishes; below -0.999 the
    inverse of A_0 is so large that rounding would hide all the rounds that follow; for the same
    reason `a` is at least 1e-6.

    Only the chosen class learns, so a class whose scores fall in the first rounds may never be
    chosen again. On `onebit.streams.synsep` the diagonal form with eta=1 loses one of nine classes
    for good in this way; with eta=1000 it finds all of them.

    Late feedback is applied to the weights and matrices at the time it arrives, and t counts the
    rounds with feedback.

    References
    ----------
    K. Crammer and C. Gentile. Multiclass classification with bandit feedback using adaptive
    regularization. Machine Learning 90 (2013), 347-383.

    Examples
    --------
    >>> from onebit import Confidit, play, streams
    >>> X, y = streams.synsep(10_000, seed=0)
    >>> play(Confidit(covariance="full"), X, y).n_mistakes
    52
    """

    reference = "Crammer, Gentile 2013"
    cost = Cost(LINEAR, full="d^2 K")
    bound = bounds.CONFIDIT
    forms: ClassVar[list[dict[str, Any]]] = [
        {"projection": True, "confidence": "theory", "covariance": "full"},
        {"covariance": "full"},
        {"confidence": "theory", "covariance": "full", "approximation_error": [0.1, 0.01]},
        {"projection": True, "covariance": "full"},
        {},
        {"projection": True, "alpha": 0.5},
        {"normalize": False, "a": 1.0},
    ]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "eta": [NOT_NEGATIVE],
        "alpha": [Interval(Real, -0.999, 1, closed="both")],
        "confidence": [StrOptions({"constant", "theory"})],
        "projection": ["boolean"],
        "covariance": [StrOptions({"diagonal", "full"})],
        "norm": [NOT_NEGATIVE],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "approximation_error": [
            NOT_NEGATIVE,
            "array-like",
            callable,
            None,
        ],
        "a": [Interval(Real, 1e-6, LARGEST, closed="both"), StrOptions({"theory"})],
        "normalize": ["boolean"],
    }

    def __init__(
        self,
        eta: float = 1.0,
        alpha: float = 1.0,
        confidence: str = "constant",
        projection: bool = False,
        covariance: str = "diagonal",
        norm: float = 1.0,
        delta: float = 0.05,
        approximation_error: Any = None,
        a: float | str = "theory",
        normalize: bool = True,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.eta = eta
        self.alpha = alpha
        self.confidence = confidence
        self.projection = projection
        self.covariance = covariance
        self.norm = norm
        self.delta = delta
        self.approximation_error = approximation_error
        self.a = a
        self.normalize = normalize
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        confidence = new_confidence(self)
        alpha, normalize = float(self.alpha), bool(self.normalize)
        W = np.zeros((n_features, n_classes))
        scratch = LinearScratch(*np.zeros((2, n_classes)), *np.zeros((3, n_features)))
        if self.covariance == "full":
            A_inv = new_inverses(n_classes, n_features, confidence.a)
            kernels = PROJECTED_FULL if self.projection else FULL
            return kernels, FullState(W, A_inv, alpha, normalize, confidence, rng, scratch)
        kernels = PROJECTED_DIAGONAL if self.projection else DIAGONAL
        inverses = np.full_like(W, 1.0 / confidence.a)
        return kernels, DiagonalState(W, inverses, alpha, normalize, confidence, rng, scratch)

    def _linear_values(self, run: Run, example: Example) -> np.ndarray:
        return run.state.scratch.x[: example.indices.size]


def new_confidence(learner: Any) -> Confidence:
    """Return the confidence before the first round, for a learner with Confidit's parameters."""
    theory, given = learner.confidence == "theory", learner.approximation_error
    if given is not None and not theory:
        raise ValueError(
            f"approximation_error={given!r} widens the intervals of confidence='theory'; "
            "confidence='constant' has its width from eta alone"
        )
    rho = (1.0 + float(learner.alpha)) ** 2
    confidence = Confidence(
        width=np.array(float(learner.eta)),
        terms=np.zeros(()),
        squares=np.zeros(()),
        Q=np.zeros(()),
        rounds=np.zeros((), dtype=np.int64),
        q=_approximation_errors(0.0 if given is None else given, passed=0, n_rounds=1),
        passed=0,
        theory=theory,
        a=rho if learner.a == "theory" else float(learner.a),
        rho=rho,
        norm=float(learner.norm),
        delta=float(learner.delta),
    )
    if theory:
        confidence.width[()] = theory_width.py_func(confidence)
    return confidence


def _approximation_errors(given: Any, passed: int, n_rounds: int) -> np.ndarray:
    """Return those given, or those of `n_rounds` rounds from a function."""
    values, rounds = given, ""
    if callable(given):
        first, last = passed + 1, passed + n_rounds
        values = [given(t) for t in range(first, last + 1)]
        rounds = f" in rounds {first} to {last}"
    errors = np.atleast_1d(np.array(values, dtype=np.float64))
    if errors.ndim != 1 or errors.size == 0 or not (np.isfinite(errors) & (errors >= 0)).all():
        raise ValueError(
            "approximation_error must be a number, a sequence of numbers or a function that "
            f"returns a number, finite and non-negative; got {given!r}{rounds}"
        )
    return errors
