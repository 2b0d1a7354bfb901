"""The kernel Perceptrons of Beygelzimer et al. (2019), for weakly separable examples."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from onebit.core import Cost, Example, Kernels, Learner
from onebit.core.engine import PythonKernels
from onebit.core.example import dense
from onebit.core.generator import below
from onebit.core.growing import Growing
from onebit.core.offer import on_offer
from onebit.core.state import EXAMPLES, LABELS, ROWS, Field, Generator
from onebit.learners.separable_bandit import policy, repository, theory
from onebit.numerics.rkhs import KERNEL_NAMES, KernelFunction, shortened
from onebit.theory import bounds


class State(NamedTuple):
    """Supports: examples that were added to the weights of a class.

    Attributes
    ----------
    points
        The x of each support.
    owners
        Its class.
    signs
        The sign that it was added with.
    kernel_function
        k.
    shorten
        Whether each x is first projected onto the unit ball.
    budget
        The largest number of supports of a class.
    """

    points: Annotated[Growing, EXAMPLES]
    owners: Annotated[Growing, LABELS]
    signs: Annotated[Growing, Field(ROWS, least=-1.0, most=1.0)]
    kernel_function: KernelFunction
    shorten: bool
    budget: float
    rng: Generator

    def check(self) -> None:
        """Check that signs are 1 or -1, points in the unit ball, supports within the budget."""
        points = self.points.rows
        if not (np.abs(self.signs.rows) == 1.0).all():
            raise ValueError("signs.rows has a sign that is neither 1 nor -1")
        if self.shorten and not (np.linalg.norm(points, axis=1) <= 1.0 + 1e-9).all():
            raise ValueError("points.rows has a point outside of the unit ball")
        if np.bincount(self.owners.rows, minlength=1).max() > self.budget:
            raise ValueError(f"owners.rows has a class with more than {self.budget} supports")


def point(state: State, x: Example) -> Example:
    """Return x as the kernel function takes it."""
    return shortened(x) if state.shorten else x


def score(state: State, x: Example, scores: np.ndarray) -> None:
    """Fill ``scores[i] = f_i(x)``, the sum over supports s of class i of +-k(x_s, x)."""
    k = state.kernel_function(point(state, x), state.points.rows)
    scores[:] = np.bincount(state.owners.rows, state.signs.rows * k, minlength=scores.size)


def learn_theory(state, x, scores, label, probability, offer, correct):
    """``f_label += k(x, .)``, if it was right and S empty; -= k(x, .), if wrong and in S."""
    return add(state, x, {label: theory.py_func(scores, label, correct, label)})


def learn_repository(state, x, scores, label, probability, offer, correct):
    """``f_i += k(x, .)`` or -= for each class whose Perceptron is known to have been mistaken."""
    amount = repository.py_func  # calling compiled code would take longer than running this
    labels = on_offer(offer, scores.size)
    return add(state, x, {i: amount(scores, label, correct, i) for i in labels})


def add(state: State, x: Example, amounts: dict[int, float]) -> bool:
    """Do ``f_i += amounts[i] k(x, .)``, where each amount is 1, -1 or 0."""
    row = dense(point(state, x)) if any(amounts.values()) else None
    for i, amount in amounts.items():
        if amount == 0.0:
            continue
        mine = np.flatnonzero(state.owners.rows == i)
        if mine.size < state.budget:
            state.points.append(row)
            state.owners.append(i)
            state.signs.append(amount)
        else:
            s = mine[below(state.rng, mine.size)]
            state.points.rows[s] = row
            state.signs.rows[s] = amount
    return any(amounts.values())


THEORY = PythonKernels("theory", score, policy.py_func, learn_theory)
REPOSITORY = PythonKernels("repository", score, policy.py_func, learn_repository)


class KernelSeparableBandit(Learner):
    """`SeparableBandit` with a kernel: finitely many mistakes on weakly separable streams.

    The binary Perceptron of each class is a sum of kernel functions, one for each example on which
    it was corrected. Examples are weakly separable if a linear rule gives the right label the
    highest score; in the space of the rational kernel they are then strongly separable.

    Parameters
    ----------
    kernel : str or callable, default="rational"
        "rational" is the paper's, k(x, x') = 1 / (1 - <x, x'> / 2). Others are "cosine",
        "laplacian", "linear", "poly" and "rbf", as in scikit-learn, or a function of two matrices
        that returns the kernel of each row of the first with each row of the second, such as those
        of `sklearn.metrics.pairwise`.
    form : {"theory", "repository"}, default="theory"
        As in `SeparableBandit`.
    budget : int >= 1 or None, default=None
        The largest number of examples that a class remembers. Beyond that, a new one replaces one
        drawn at random, as in the authors' code. None means no limit, as in the paper.
    kernel_params : dict, optional
        Keyword arguments of the kernel, such as ``{"gamma": 0.1}`` for "rbf". For "rational":
        ``nu`` in (0, 1), in place of 1/2.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the exploration, and of the examples that a budget drops.

    Notes
    -----
    The rational kernel is for examples in the unit ball, as the paper assumes. With that kernel, an
    x outside the ball is normalised to unit length.

    A round evaluates the kernel function at x and every remembered example, each of which is stored
    as a dense row. Where mistakes never end, neither does the growth: set a budget. With a budget
    nothing is proven. A learner with a callable kernel cannot be saved to a file.

    References
    ----------
    A. Beygelzimer, D. Pal, B. Szorenyi, D. Thiruvenkatachari, C.-Y. Wei and C. Zhang. Bandit
    multiclass linear classification: efficient algorithms for the separable case. ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import KernelSeparableBandit, SeparableBandit, play
    >>> angle = np.random.default_rng(0).uniform(-3, 3, size=5_000)
    >>> angle = angle[abs(abs(angle) - 1) > 0.1]
    >>> X, y = np.stack([np.cos(angle), np.sin(angle)], axis=1), np.digitize(angle, [-1, 1])
    >>> play(KernelSeparableBandit(random_state=0), X, y).n_mistakes
    40
    >>> play(SeparableBandit(random_state=0), X, y).n_mistakes
    650
    """

    reference = "Beygelzimer et al. 2019"
    cost = Cost("n d, n examples remembered; linear, rational: n nnz")
    bound = bounds.KERNEL_SEPARABLE_BANDIT
    forms: ClassVar[list[dict[str, Any]]] = [
        {},
        {"form": "repository", "budget": 10},
        {"kernel": "rbf", "form": "repository"},
    ]
    exempt: ClassVar[dict[str, str]] = {
        "check_state_stays_the_same_size": "it remembers the examples that it learned from"
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(KERNEL_NAMES), callable],
        "form": [StrOptions({"theory", "repository"})],
        "budget": [Interval(Integral, 1, None, closed="left"), None],
        "kernel_params": [dict, None],
    }

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rational",
        form: str = "theory",
        budget: int | None = None,
        kernel_params: dict[str, Any] | None = None,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.form = form
        self.budget = budget
        self.kernel_params = kernel_params
        self.classes = classes
        self.random_state = random_state

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, State]:
        state = State(
            points=Growing(np.zeros((0, n_features))),
            owners=Growing(np.zeros(0, dtype=np.int64)),
            signs=Growing(np.zeros(0)),
            kernel_function=KernelFunction(self.kernel, self.kernel_params),
            shorten=self.kernel == "rational",
            budget=np.inf if self.budget is None else self.budget,
            rng=rng,
        )
        return THEORY if self.form == "theory" else REPOSITORY, state
