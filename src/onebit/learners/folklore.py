"""FOLKLORE: fast online K-class logistic regression, with a regret of order ln T."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numba import float64
from sklearn.utils._param_validation import StrOptions

from onebit.core import Cost, Kernels, ProbabilityLearner, kernel
from onebit.core.example import Example
from onebit.core.ranges import POSITIVE
from onebit.core.run import Run
from onebit.core.state import Field, Generator, Within
from onebit.numerics.exploration import greedy
from onebit.numerics.fixed_point import fixed_point, lookahead_fixed_point
from onebit.numerics.logistic_surrogate import (
    Parameters,
    Scratch,
    check_basis,
    class_basis,
    fill_products,
    new_scratch,
    safe_parameters,
    update,
)
from onebit.numerics.second_order import Inverse, new_inverse
from onebit.theory import bounds

_SUM_TOLERANCE = 1e-6
"""How far the sum of a distribution may be from one."""


class State(NamedTuple):
    """The surrogate losses so far, in a basis that leaves out what never changes (Appendix D).

    Attributes
    ----------
    A_inv
        A^{-1}.
    h
        A^{-1} G.
    Q
        The basis of the classes; see `onebit.numerics.logistic_surrogate`.
    """

    A_inv: Annotated[Inverse, Within(n="contrast_weights")]
    h: Annotated[np.ndarray, Field("features", "contrasts")]
    Q: Annotated[np.ndarray, Field("classes", "contrasts")]
    parameters: Parameters
    scratch: Scratch
    rng: Generator

    def check(self) -> None:
        """Check that Q is the basis."""
        check_basis(self.Q)


@kernel
def score(state, x, scores):
    """Fill z = W_t x, the solution of z = g~ - A~ sigma(z) (Appendix E), up to a constant."""
    fill_products(state, x)
    Q, (_, T, hx) = state.Q, state.scratch
    K, m = Q.shape
    # In the basis of the classes, T is tau I + Q (T - tau I) Q': any tau will do, as it adds only
    # a constant to z. This one lets the classes of a new learner tie exactly.
    tau = T[0, 0]
    rest = 0.5 * (T + T.T)
    for k in range(m):
        rest[k, k] -= tau
    A = 0.5 * np.dot(Q, np.dot(rest, Q.T))
    g = -0.5 * np.dot(Q, hx)
    for k in range(K):
        A[k, k] += 0.5 * tau
    if state.parameters.lookahead:
        lookahead_fixed_point(A, g, state.parameters.c, scores, np.empty(K))
        return
    for k in range(K):
        g[k] += 0.5 * A[k, k]
    fixed_point(A, g, scores, np.empty(K))


@kernel
def learn(state, x, scores, label, probability, offer, truth):
    """Algorithm 1, the updates."""
    y = np.zeros(scores.size)
    y[truth] = 1.0
    return update(state, x, scores, y)


@kernel
def learn_soft(state, x, scores, label, probability, offer, truth):
    """Algorithm 1, the updates, told a distribution over the labels."""
    return update(state, x, scores, truth)


FOLKLORE = Kernels("folklore", score, greedy, learn)
SOFT = Kernels("soft", score, greedy, learn_soft, feedback=float64[::1])


class Folklore(ProbabilityLearner):
    """FOLKLORE: logistic regression that hedges over all labels before it predicts.

    Its weights W_t, computed for each x, are the minimiser of a regularisation, a quadratic
    surrogate for the loss of every earlier round, and a term phi_t that stands for all the labels
    that x might have, chosen so that the worst of them costs least. It is improper: W_t depends on
    x. That makes its regret grow with `B` and ln T only, where proper learners need e^B.

    Parameters
    ----------
    B : float > 0, default=1.0
        Largest length ||w_k|| of a row of the weights it competes with.
    R : float > 0, default=1.0
        Largest length ||x|| of an example. Longer ones are learned from, but void the bound.
    regularization : float > 0 or None, default=None
        lambda, the weight of ||W||_F^2. None is 2 R / B, the authors' choice.
    curvature : {"safe", "paper"}, default="safe"
        "safe" corrects both errors of the paper, see the notes. "paper" is Algorithm 1 as
        printed, for comparison: nothing is proven of it.
    lookahead : bool, default=False
        Whether phi_t is chosen for A_t, which contains the curvature of the round itself, instead
        of A_{t-1}. The bound is smaller, and a prediction solves several fixed-point equations
        instead of one; see the notes.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Not used: it does not explore.

    Notes
    -----
    `learn` also takes a distribution over the labels as the truth, one number for each of
    `classes_`.

    With z = W x, p = sigma(z) the softmax and S(p) = diag(p) - pp', the loss of round t has the
    gradient (p - y) (x) x and the Hessian H_t = S(p) (x) xx' at W_t. Its surrogate is (3.2)

        l^_t(W) = l_t(W_t) + <W - W_t, grad l_t(W_t)> + c ||W - W_t||_{H_t}^2,

    and the analysis (Lemma 6) needs l^_t <= l_t wherever ||W x||_inf <= B R. Two things in the
    paper are wrong.

    *The constant.* With the printed c = 1 / (B R + ln(K) / 2), Lemma 1 does not hold. Its proof
    comes, rightly, to two numbers: the probabilities v and w that sigma(W_t x) and sigma(W x) give
    to some set of labels. With D = logit w - logit v, the largest value of l^_t - l_t is one of

        f(v, w) = -KL(v || w) + c v (1 - v) D^2,

    where v (1 - v) D^2 is a variance, a mean square less a squared mean; the paper goes on with
    minus the sum of both in its place. As dD/dv = -1 / (v (1 - v)), the derivative by v is

        df/dv = D (1 - 2c - 2c (v - 1/2) D),

    where the paper has D (1 + 2c - c (v - 1/2) D). Since (v - 1/2) logit v >= 0, 2 (v - 1/2) D is
    at most the absolute value of logit w, which is at most 2 B R + ln(K - 1) where
    ||W x||_inf <= B R. So with

        c = 1 / (2 B R + ln(K - 1) + 2)

    the bracket is never negative: f rises up to v = w, where it is zero, and falls after, which is
    Lemma 1. The printed constant is too large: near v = w, f is (c - 1/2) v (1 - v) D^2, so that
    c <= 1/2 is necessary, and for K = 2 it lets l^_t exceed l_t by 0.38 at B R = 1, by 0.91 at 5
    and by 4.52 at 20. The order of the regret stays the same.

    *The linear term.* c ||W - W_t||^2 is c ||W||^2 - 2c <W, H_t W_t> + a constant. The printed
    update G += grad l_t(W_t) leaves out the second part, so that the two sides of (3.3) are not
    equal. The right side, which is what Appendix E computes, has the curvature of every round
    around zero in place of W_t: the weights are drawn to zero ever more strongly, and the regret
    grows linearly. With two features, two classes and B = R = 1 it was 361 after 10,000 rounds of
    labels from a logistic model, where the proof of Theorem 3 promises 54, and 10 with both errors
    corrected. As H_t W_t = (S(p) z) (x) x, the update is

        G += (p - y - 2c S(p) z) (x) x.

    With both corrected and lambda = 2 R / B, the regret is at most

        lambda K B^2 + K d / (4c) ln(1 + T / (2 K d)),

    `onebit.theory.bounds.folklore`. By Lemmas 6 to 8 it is at most lambda K B^2 and a quarter of
    the sum of Tr(A_{t-1}^{-1} H_t). As S(p) <= I / 2, c H_t <= lambda I / 2, so that A_{t-1} is not
    below A_t - lambda I / 2, and the sum is at most ln det(I + N) / c with N the sum of
    2c / lambda H_t. That is at most K d ln(1 + Tr N / (K d)) / c, and
    Tr N <= 2c T R^2 / lambda = c B R T <= T / 2.

    *A = A_t.* Section 3 notes that phi_t made with A_t in place of A_{t-1} would have the smaller
    regret: a quarter of the sum of Tr(A_t^{-1} H_t), so that N is the sum of c / lambda H_t, for
    any lambda. As A_t depends on W_t, that is a fixed-point equation, which `lookahead` solves.
    With T = (I (x) x)' A_{t-1}^{-1} (I (x) x) and T' the same for A_t, which is T (I + c S(p)
    T)^{-1}, it is

        z = g - T p / 2 + (I + c T S(p)) diag(T') / 4,

    in K dimensions, where A_{t-1} has diag(T) / 4 as the last term. Brouwer's theorem gives a
    solution, and iterating the last term finds it: c T is at most 1/4 for examples within R, and no
    more than 16 iterations were needed in 3,000 random problems (`make test-all` repeats them).

    A phi_t of one's own is not possible: the K equations result because the gradient of phi_t is
    sigma(W x) (x) x and a term in which W appears through W x only. Any other phi_t would be a
    minimisation over all d K weights in each round, and would void the bound.

    W_t itself is never formed. z solves z = g~ - A~ sigma(z) in K dimensions (Appendix E), by
    Newton's method instead of the paper's gradient descent, and the inverse of A is updated by
    Woodbury's formula. Both leave out the one direction of the classes, the vector of ones, along
    which nothing ever changes: A has size d (K - 1).

    References
    ----------
    N. Agarwal, S. Kale and J. Zimmert. Efficient methods for online multiclass logistic regression.
    ALT 2022; arXiv:2110.03020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from onebit import Folklore, play
    >>> X, y = load_digits(return_X_y=True)
    >>> play(Folklore(B=10), normalize(X), y).n_mistakes
    136
    """

    reference = "Agarwal, Kale, Zimmert 2022"
    cost = Cost("K^3 d^2")
    bound = bounds.FOLKLORE
    feedback = "full"
    forms: ClassVar[list[dict[str, Any]]] = [{}, {"curvature": "paper"}, {"lookahead": True}]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "B": [POSITIVE],
        "R": [POSITIVE],
        "regularization": [POSITIVE, None],
        "curvature": [StrOptions({"safe", "paper"})],
        "lookahead": ["boolean"],
    }

    def __init__(
        self,
        B: float = 1.0,
        R: float = 1.0,
        regularization: float | None = None,
        curvature: str = "safe",
        lookahead: bool = False,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.B = B
        self.R = R
        self.regularization = regularization
        self.curvature = curvature
        self.lookahead = lookahead
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        B, R = float(self.B), float(self.R)
        lambda_ = 2.0 * R / B if self.regularization is None else float(self.regularization)
        if self.curvature == "safe":
            parameters = safe_parameters(B, R, n_classes)
        else:
            parameters = Parameters(1.0 / (B * R + math.log(n_classes) / 2.0), 0.0)
        parameters = parameters._replace(lookahead=bool(self.lookahead))
        m = n_classes - 1
        return FOLKLORE, State(
            A_inv=new_inverse(n_features * m, lambda_),
            h=np.zeros((n_features, m)),
            Q=class_basis(n_classes),
            parameters=parameters,
            scratch=new_scratch(n_features, n_classes),
            rng=rng,
        )

    def _encode_truth(self, truth: Any, run: Run) -> Any:
        if isinstance(truth, str) or np.ndim(truth) != 1:
            return run.position_of(truth)
        return _distribution(truth, run.classes)

    def _update(
        self,
        run: Run,
        example: Example,
        label: int,
        probability: float,
        offer: np.ndarray,
        feedback: Any,
    ) -> Any:
        if isinstance(feedback, np.ndarray):
            learn = SOFT.learn(run.state)
            return learn(run.packed, example, run.scores, label, probability, offer, feedback)
        return super()._update(run, example, label, probability, offer, feedback)


def _distribution(truth: Any, classes: np.ndarray) -> np.ndarray:
    """Return the probabilities of the classes; raise for anything else."""
    y = np.array(truth, dtype=np.float64)
    if y.size != classes.size:
        raise ValueError(
            f"a distribution over the labels has one number for each of the {classes.size} "
            f"classes; got {y.size}"
        )
    if not (y >= 0.0).all() or abs(y.sum() - 1.0) > _SUM_TOLERANCE:
        raise ValueError(
            f"the numbers of a distribution are non-negative and sum to one; got {y.tolist()}"
        )
    return y
