"""Confidit in dual variables, for scores that are linear in an RKHS."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg.blas import dtpsv
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import Cost, Example, Kernels
from onebit.core.engine import PythonKernels
from onebit.core.example import INDEX, dense
from onebit.core.growing import Growing
from onebit.core.ranges import NOT_NEGATIVE, POSITIVE
from onebit.core.run import Run
from onebit.core.state import ANY, EXAMPLES, LABELS, ROWS, Field, Generator
from onebit.learners.confidit import (
    LARGEST_NORM,
    Confidence,
    ConfidenceLearner,
    Confidit,
    Scratch,
    end_round,
    multipliers,
    new_confidence,
    sign,
)
from onebit.numerics.exploration import upper_confidence
from onebit.numerics.rkhs import KERNEL_NAMES, KernelFunction, parameters_of

SMALLEST_SQUARED_NORM = 1e-280
"""A phi(x) with a smaller squared norm counts as zero: it is little but rounding error."""


class Factor:
    """L with L L' = a I + K_i, stored as the concatenated rows of its lower triangle."""

    def __init__(self, packed: np.ndarray) -> None:
        self._memory, self._n = packed, packed.size

    def solve(self, b: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        """Return L^{-1} b, or L'^{-1} b."""
        if b.size == 0:
            return b
        # To BLAS, which is column-major, the rows of L are the columns of an upper triangle.
        return dtpsv(b.size, self._memory, b, trans=not transposed)

    @property
    def packed(self) -> np.ndarray:
        """The entries so far, as a view."""
        return self._memory[: self._n]

    def append(self, row: np.ndarray) -> None:
        """Add the next row of the triangle."""
        end = self._n + row.size
        if end > self._memory.size:
            grown = np.zeros(max(128, 2 * end))
            grown[: self._n] = self._memory[: self._n]
            self._memory = grown
        self._memory[self._n : end] = row
        self._n = end

    def _asdict(self) -> dict[str, np.ndarray]:
        return {"packed": self.packed}

    def _replace(self, packed: np.ndarray) -> Self:
        return type(self)(packed)


class Factors(tuple[Factor, ...]):
    """A factor for each class."""

    __slots__ = ()

    def _asdict(self) -> dict[str, Factor]:
        return {str(i): factor for i, factor in enumerate(self)}

    def _replace(self, **factors: Factor) -> Self:
        return type(self)(factors[str(i)] for i in range(len(self)))


class State(NamedTuple):
    """Weights w_i = sum over rounds s of C[s, i] phi_s, with phi_s = scale_s phi(x_s).

    Attributes
    ----------
    examples
        x_s.
    scales
        Those of `scale_of`.
    outputs
        The chosen labels.
    C
        Coefficients of the weights.
    L
        For each class i, the factor of a I + K_i, with K_i the kernel matrix of the rounds S_i with
        output i.
    """

    examples: Annotated[Growing, EXAMPLES]
    scales: Annotated[Growing, Field(ROWS, least=0.0)]
    outputs: Annotated[Growing, LABELS]
    C: Annotated[Growing, Field(ROWS, "classes")]
    L: Annotated[Factors, Field(ANY)]
    kernel_function: KernelFunction
    alpha: float
    normalize: bool
    confidence: Confidence
    rng: Generator
    scratch: Scratch

    def check(self) -> None:
        """Check that scales and factors follow from examples and outputs, up to rounding."""
        X, scales, outputs = self.examples.rows, self.scales.rows, self.outputs.rows
        if self.confidence.rounds != len(X):
            raise ValueError(f"confidence.rounds is {self.confidence.rounds}, not {len(X)}")
        sizes = [n * (n + 1) // 2 for n in np.bincount(outputs, minlength=len(self.L)).tolist()]
        for i, size in enumerate(sizes):
            if self.L[i].packed.size != size:
                raise ValueError(f"L.{i}.packed has {self.L[i].packed.size} numbers, not {size}")
        features = np.arange(X.shape[1], dtype=INDEX)
        for i, factor in enumerate(self.L):
            mine = np.flatnonzero(outputs == i)
            L, K = np.zeros((2, mine.size, mine.size))
            L[np.tril_indices(mine.size)] = factor.packed
            with np.errstate(all="ignore"):
                for row, s in enumerate(mine):
                    k = self.kernel_function(Example(features, X[s], features.size), X[mine])
                    if abs(scales[s] - scale_of(self, k[row])) > 1e-6 * scales[s]:
                        raise ValueError(f"scales.rows[{s}] is not that of the kernel")
                    K[row] = scales[s] * k * scales[mine]
                K[np.diag_indices(mine.size)] += self.confidence.a
                near = np.abs(L @ L.T - K) <= 1e-6 * K.diagonal().max(initial=0.0)
            if not (near.all() and (L.diagonal() > 0.0).all()):
                raise ValueError(f"L.{i}.packed is not the factor of the kernel")


class Products(NamedTuple):
    """Kernel values of an x.

    Attributes
    ----------
    k
        The inner products phi_s . phi.
    square
        phi . phi.
    scale
        The scale of phi.
    """

    k: np.ndarray
    square: float
    scale: float


def products_with(state: State, x: Example) -> Products:
    """Evaluate the kernel function at x and all rounds."""
    k_xx = float(state.kernel_function(x, dense(x)[np.newaxis])[0])
    if not (math.isfinite(k_xx) and k_xx >= 0.0):
        raise ValueError(f"the kernel of an x with itself must be finite and >= 0; got {k_xx}")
    scale = scale_of(state, k_xx)
    k = state.kernel_function(x, state.examples.rows) * state.scales.rows * scale
    return Products(k, float(scale > 0.0) if state.normalize else scale**2 * k_xx, scale)


def scale_of(state: State, k_xx: float) -> float:
    """Return the scale of an example with ||phi(x)||^2 = k_xx."""
    size = math.sqrt(k_xx)
    if state.normalize:
        return 1.0 / size if k_xx > SMALLEST_SQUARED_NORM else 0.0
    longest = LARGEST_NORM * math.sqrt(state.confidence.a)
    return longest / size if size > longest else 1.0


def reduced(state: State, seen: Products, i: int) -> tuple[np.ndarray, float]:
    """Return l = L_i^{-1} k_i and n_i = phi' A_i^{-1} phi = (phi . phi - l . l) / a."""
    a = state.confidence.a
    reduced_k = state.L[i].solve(seen.k[state.outputs.rows == i])
    n = (seen.square - reduced_k @ reduced_k) / a
    # No eigenvalue of A_i exceeds a + sum ||phi_s||^2, whatever rounding says.
    return reduced_k, max(float(n), seen.square / (a + float(state.confidence.squares)))


def move(state: State, i: int, reduced_k: np.ndarray, amount: float) -> None:
    """Do w_i += amount A_i^{-1} phi, where A_i^{-1} phi = (phi - sum_{S_i} h_s phi_s) / a.

    h = (a I + K_i)^{-1} k_i; the coefficients of phi are in the last row of C.
    """
    C, n = state.C.rows, len(state.outputs.rows)
    amount /= state.confidence.a
    C[n, i] += amount
    C[:n, i][state.outputs.rows == i] -= amount * state.L[i].solve(reduced_k, transposed=True)


def linear_scores(state: State, seen: Products) -> np.ndarray:
    """Return w_i . phi."""
    # Not a matrix product: its blocking may round equal columns differently.
    return (seen.k[:, np.newaxis] * state.C.rows).sum(axis=0)


def score(state: State, x: Example, scores: np.ndarray) -> None:
    """Figure 1, step 3: the scores w_i . phi, and n_i for later steps."""
    seen = products_with(state, x)
    scores[:] = linear_scores(state, seen)
    state.scratch.n[:] = [reduced(state, seen, i)[1] for i in range(scores.size)]


def score_projected(state: State, x: Example, scores: np.ndarray) -> None:
    """Figure 1, steps 2-3; `learn` stores the projection."""
    score(state, x, scores)
    n, tau = state.scratch
    multipliers.py_func(scores, n, state.alpha, tau)
    scores += tau * n


def policy(state, x, scores, offer, p):
    """Figure 1, step 4."""
    return upper_confidence.py_func(
        scores, state.scratch.n, float(state.confidence.width), offer, p
    )


def learn(state, x, scores, label, probability, offer, correct):
    """Figure 1, steps 6-8."""
    seen = products_with(state, x)
    state.C.append(0.0)
    return update(state, x, seen, scores, label, correct)


def learn_projected(state, x, scores, label, probability, offer, correct):
    """Figure 1, steps 2 and 6-8: the projection moves the weights of all classes."""
    seen = products_with(state, x)
    state.C.append(0.0)
    for i in range(scores.size):
        move(state, i, reduced(state, seen, i)[0], state.scratch.tau[i])
    return update(state, x, seen, scores, label, correct)


def update(state, x, seen, scores, label, correct):
    """Do A_label += phi phi', which adds a row and a column to a I + K_label, and step 8."""
    beta = sign.py_func(state.alpha, state.rng, correct)
    reduced_k, n = reduced(state, seen, label)
    move(state, label, reduced_k, (beta - scores[label]) / (1.0 + n))
    state.L[label].append(np.append(reduced_k, math.sqrt(state.confidence.a * (1.0 + n))))
    state.examples.append(dense(x))
    state.scales.append(seen.scale)
    state.outputs.append(label)
    end_round.py_func(state.confidence, n / (1.0 + n), seen.square)
    return True


KERNELS = PythonKernels("kernel", score, policy, learn)
PROJECTED = PythonKernels("projected_kernel", score_projected, policy, learn_projected)


class KernelConfidit(ConfidenceLearner):
    """Confidit with a kernel: full-matrix `Confidit` in the RKHS of a kernel.

    The weights of each class are a sum over the rounds so far, and the uncertainty of a score
    follows from the kernel function at x and at the rounds where that class was chosen. With the
    linear kernel it makes the same decisions as `Confidit` with covariance="full", in time that
    grows with the number of rounds and not with the square of the number of features: it suits few
    examples of many features.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian", "cosine"} or callable, default="rbf"
        One of the kernels of `sklearn.metrics.pairwise` that are positive definite, or a function
        of two matrices that returns the kernel of each row of the first with each row of the
        second. "polynomial" is "poly".
    eta, alpha, confidence, projection, norm, delta, approximation_error, a
        As in `Confidit`.
    normalize : bool, default=True
        Whether phi(x), the image of x in the kernel's space, is divided by its norm.
    gamma : float > 0, optional
        Of "rbf", "laplacian" and "poly"; None is 1 / n_features.
    degree : int >= 1, default=3
        Of "poly".
    coef0 : float >= 0, default=1.0
        Of "poly".
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the updates after mistakes, if alpha < 1.

    Notes
    -----
    It is phi(x) that has unit length in the paper's theory, so by default the learner uses
    k(x, z) / sqrt(k(x, x) k(z, z)). Then "linear" and "cosine" are the same, and "rbf" and
    "laplacian" are unchanged.

    The paper only says that the algorithm can be run in dual variables. With A_0 = a I, K_i the
    kernel matrix of the rounds with output i and k_i its column for x, the matrix identity
    A_i^{-1} phi = (phi - Phi_i' h) / a with h = (a I + K_i)^{-1} k_i turns every step of the
    algorithm into one on the coefficients of the weights. A Cholesky factor of a I + K_i grows by a
    row when class i is chosen.

    Every round is remembered, with all its features: after n rounds the learner holds n d numbers
    for the examples, n K for the weights and about n^2 / (2 K) for the factors. A learner with a
    callable kernel cannot be saved to a file.

    References
    ----------
    K. Crammer and C. Gentile. Multiclass classification with bandit feedback using adaptive
    regularization. Machine Learning 90 (2013), 347-383; Section 3.

    Examples
    --------
    Rings around the origin, which no linear rule separates:

    >>> import numpy as np
    >>> from onebit import Confidit, KernelConfidit, play
    >>> X = np.random.default_rng(0).normal(size=(1_000, 2))
    >>> y = np.digitize(np.linalg.norm(X, axis=1), [0.8, 1.5])
    >>> play(KernelConfidit(), X, y).n_mistakes
    108
    >>> play(Confidit(covariance="full"), X, y).n_mistakes
    663
    """

    reference = "Crammer, Gentile 2013"
    cost = Cost("n d + n^2 in round n")
    bound = Confidit.bound
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {"kernel": "linear", "projection": True, "confidence": "theory", "alpha": 0.5},
        {"kernel": "linear", "normalize": False, "a": 1.0},
    ]
    exempt: ClassVar[dict[str, str]] = {
        "check_state_stays_the_same_size": "its weights are a sum over all rounds"
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(KERNEL_NAMES - {"rational"}), callable],
        **{
            name: constraint
            for name, constraint in Confidit._parameter_constraints.items()
            if name != "covariance"
        },
        "gamma": [POSITIVE, None],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [NOT_NEGATIVE],
    }

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rbf",
        eta: float = 1.0,
        alpha: float = 1.0,
        confidence: str = "constant",
        projection: bool = False,
        norm: float = 1.0,
        delta: float = 0.05,
        approximation_error: Any = None,
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        a: float | str = "theory",
        normalize: bool = True,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.eta = eta
        self.alpha = alpha
        self.confidence = confidence
        self.projection = projection
        self.norm = norm
        self.delta = delta
        self.approximation_error = approximation_error
        self.a = a
        self.normalize = normalize
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.classes = classes
        self.random_state = random_state

    @property
    def coef_(self) -> np.ndarray:
        """Weights, of shape (n_classes, n_features), if the kernel is linear."""
        if self.kernel != "linear" or not self._started:
            raise AttributeError(
                f"only a {type(self).__name__} with kernel='linear' that has started has weights "
                "for features"
            )
        state = self._run.state
        return (state.C.rows * state.scales.rows[:, np.newaxis]).T @ state.examples.rows

    def _linear_values(self, run: Run, example: Example) -> np.ndarray:
        square = float(example.values @ example.values)
        return scale_of(run.state, square) * example.values

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        names = () if callable(self.kernel) else parameters_of(self.kernel)
        state = State(
            examples=Growing(np.zeros((0, n_features))),
            scales=Growing(np.zeros(0)),
            outputs=Growing(np.zeros(0, dtype=np.int64)),
            C=Growing(np.zeros((0, n_classes))),
            L=Factors(Factor(np.zeros(0)) for _ in range(n_classes)),
            kernel_function=KernelFunction(
                self.kernel, {name: getattr(self, name) for name in names}
            ),
            alpha=float(self.alpha),
            normalize=bool(self.normalize),
            confidence=new_confidence(self),
            rng=rng,
            scratch=Scratch(np.zeros(n_classes), np.zeros(n_classes)),
        )
        return PROJECTED if self.projection else KERNELS, state
