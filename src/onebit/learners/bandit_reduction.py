"""The bandit reduction of FOLKLORE's authors: one bit for learners that need the label."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from onebit.core import Cost, Kernels, Learner, ProbabilityLearner, lean_kernel
from onebit.core.base import InnerLearner
from onebit.core.engine import PythonKernels, makes_kernels
from onebit.core.generator import below, new_generator, uniform
from onebit.core.offer import n_on_offer, on_offer
from onebit.core.run import Run
from onebit.core.state import Generator
from onebit.learners.aioli import Aioli
from onebit.learners.folklore import Folklore
from onebit.learners.other_libraries import (
    CLASSIFIER,
    NOT_SAVED,
    Model,
    gives_probabilities,
    new_model,
    seeded,
    takes_many_classes,
    takes_positive_only,
    with_labels,
)
from onebit.numerics.argmax import argmax
from onebit.numerics.softmax import softmax
from onebit.theory import bounds


class State(NamedTuple):
    """`alg`, the state of the learner inside, and gamma, the share of rounds that explore."""

    alg: Any
    gamma: float
    rng: Generator


@lean_kernel
def sigma(state, x, scores, offer, p):
    """Policy of drawing the label from the model."""
    softmax(scores, 1.0, p, offer)
    return argmax(scores, offer)


@makes_kernels
def reduction_kernels(alg: Kernels, samples: bool) -> Kernels:
    """Return the kernels of Algorithm 2 around those of Alg.

    A round that does not explore draws its label from sigma(Alg.Predict(x)) if `samples`, else from
    the policy of Alg.
    """
    compiled = not isinstance(alg, PythonKernels)
    decorator: Any = lean_kernel if compiled else lambda function: function
    predict, update = alg._kernels["score"], alg._kernels["learn"]
    exploit = alg._kernels["policy"]
    if samples:
        exploit = sigma if compiled else sigma.py_func

    @decorator
    def score(state, x, scores):
        """Alg.Predict(x)."""
        predict(state.alg, x, scores)

    @decorator
    def policy(state, x, scores, offer, p):
        """If Ber(gamma) = 1, a label uniformly at random; else one of Alg."""
        greedy = exploit(state.alg, x, scores, offer, p)
        gamma, K = state.gamma, n_on_offer(offer, p.size)
        for k in on_offer(offer, p.size):
            p[k] = (1.0 - gamma) * p[k] + gamma / K
        return greedy

    @decorator
    def learn(state, x, scores, label, probability, offer, correct):
        """If Ber(gamma) = 1 and the label is right, Alg.Update(x, label).

        Given the label, Ber(gamma) was 1 with probability gamma / K / p_label. It is drawn here,
        after the label; their joint distribution is the same as if it had been drawn before.
        """
        K = n_on_offer(offer, scores.size)
        if not correct or uniform(state.rng) >= state.gamma / K / probability:
            return False
        # A full-information learner learns from the label over all labels, whatever was on offer.
        return update(state.alg, x, scores, label, probability, None, label)

    name = f"{alg._module}.{alg._name}" + ("" if samples else ".greedy")
    kind = Kernels if compiled else PythonKernels
    return kind(name, score, policy, learn, made_by=(reduction_kernels, (alg, samples)))


class _Forms:
    """The forms, made on demand: scikit-learn's linear models take long to import."""

    def __get__(self, learner: Any, cls: type) -> list[dict[str, Any]]:
        from sklearn.linear_model import SGDClassifier

        return [
            {},
            {"learner": Folklore(B=2.0), "gamma": 0.5},
            {"learner": SGDClassifier(loss="log_loss", random_state=0), "gamma": 0.5},
        ]


class BanditReduction(ProbabilityLearner):
    """Runs a full-information learner on one bit of feedback: it learns from lucky guesses.

    With probability `gamma` it chooses a label uniformly at random. If that label is right, the
    true label is known, and the learner inside is told of it; this happens in a share gamma / K of
    the rounds, independently of what the learner inside predicts. In all other rounds the label is
    drawn from the probabilities of the learner inside, and nothing is learned, right or wrong. The
    guarantees of the learner inside for full information then carry over, for fewer rounds.

    Parameters
    ----------
    learner : learner, scikit-learn classifier, River classifier or None, default=None
        The learner inside, Alg in the paper. None is `Folklore()`. It is copied before its first
        round, and its classes are those given here. It is one of

        - a learner of onebit with ``feedback="full"``;
        - a classifier of scikit-learn with `partial_fit`, such as `MultinomialNB` or
          ``SGDClassifier(loss="log_loss")``;
        - a classifier of River.
    gamma : float in [0, 1] or "theory", default="theory"
        Share of the rounds that explore. "theory" is what Theorem 9 asks for,
        min{1, sqrt(K Reg(T) / T)} with Reg the bound on the regret of `Folklore` or `Aioli`; for
        other learners, give a number.
    horizon : int >= 1, default=10_000
        T, the number of rounds that gamma="theory" is for.
    classes : array-like, optional
        The labels. Needed to `decide` before any `fit`.
    random_state : int, RandomState instance or None, default=None
        Seed of the labels drawn. It also seeds the learner inside if its `random_state` is None. A
        River classifier keeps its own seed.

    Attributes
    ----------
    learner_ : learner or classifier
        The learner inside in its current state, which keeps learning.

    Notes
    -----
    As Alg learns from a round with probability gamma / K, whatever it predicts there, its regret
    Reg over the rounds that it learns from is, in expectation, gamma / K times its regret over all
    rounds. As the probability of a mistake is 1 - p_y <= -ln p_y, the mistakes are at most the cost
    of exploration plus the loss of Alg:

        E[mistakes] <= gamma T + min_W sum of l_t(W) + K Reg(T) / gamma,

    which for gamma = sqrt(K Reg(T) / T) is 2 sqrt(K T Reg(T)) above the loss of the best W.
    Theorem 9 says sqrt(K T Reg(T)), without the factor 2.

    The label does not reveal whether a round explored. This is drawn in `learn` from its
    probability given the label, which leaves the distribution of runs the same. So a logged
    decision needs only its label and the probability q it had: the learner inside is told of it
    with probability min{1, gamma / (K q)} if it was right. Whichever policy chose it, the right
    label of an x is then learned with the same probability gamma / K, if q >= gamma / K.

    *Learners without probabilities.* A learner of onebit that is not a probability model, such as
    `Perceptron`, follows its own policy in rounds that do not explore. A classifier of scikit-learn
    with `decision_function` but without `predict_proba`, such as ``SGDClassifier()``, chooses the
    label with the largest score: the exploration is gamma-greedy. `predict_proba` is missing then,
    and Theorem 9, which is about the logistic loss, does not hold.

    *Classifiers of other libraries.* Each x is passed to them as a dense row. Before their first
    example, and where their output is not a distribution, all labels have equal scores; this is the
    case for scikit-learn's `GaussianNB` until it has seen two examples of each class, since it
    smoothes over the rows of one call. A classifier of River is told the positions of the labels in
    `classes_`, as those for two classes take 0 and 1 only, and the features by their positions. A
    reduction with such a classifier cannot be saved to a file. Each round is a call from Python.

    References
    ----------
    N. Agarwal, S. Kale and J. Zimmert. Efficient methods for online multiclass logistic regression.
    ALT 2022; arXiv:2110.03020. Algorithm 2 and Theorem 9.

    Examples
    --------
    >>> import numpy as np
    >>> from onebit import play
    >>> from onebit.learners import BanditReduction, Folklore
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(10_000, 4))
    >>> X /= np.linalg.norm(X, axis=1, keepdims=True)
    >>> y = np.argmax(X @ rng.normal(size=(4, 5)), axis=1)
    >>> play(BanditReduction(Folklore(B=50), gamma=0.1, random_state=0), X, y).error_rate
    0.3168

    Around a classifier of scikit-learn:

    >>> from sklearn.linear_model import SGDClassifier
    >>> sgd = SGDClassifier(loss="log_loss")
    >>> play(BanditReduction(sgd, gamma=0.3, random_state=0), X[:2_000], y[:2_000]).error_rate
    0.5435
    """

    reference = "Agarwal, Kale, Zimmert 2022"
    cost = Cost("that of the learner inside")
    bound = bounds.BANDIT_REDUCTION
    forms: ClassVar[list[dict[str, Any]]] = _Forms()  # type: ignore[assignment]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "learner": [Learner, *CLASSIFIER, None],
        "gamma": [Interval(Real, 0, 1, closed="both"), StrOptions({"theory"})],
        "horizon": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        learner: Any = None,
        gamma: float | str = "theory",
        horizon: int = 10_000,
        *,
        classes: Any = None,
        random_state: Any = None,
    ) -> None:
        self.learner = learner
        self.gamma = gamma
        self.horizon = horizon
        self.classes = classes
        self.random_state = random_state

    def _inverse_temperature(self, state: Any) -> float | None:
        return 1.0 if _samples(_inside(self.learner)) else None

    @available_if(lambda self: _samples(_inside(self.learner)))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label for each row of `X`: the model, without `gamma`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return super().predict_proba(X)

    @available_if(lambda self: _samples(_inside(self.learner)))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`, exact also where those are nearly zero."""
        return super().predict_log_proba(X)

    @property
    def learner_(self) -> Any:
        """The learner inside in its current state, which keeps learning."""
        check_is_fitted(self)
        run = self._run
        alg = run.state.alg
        if isinstance(alg, Model):
            return alg.model
        kernels: Any = run.kernels
        _, (inner, _) = kernels.made_by
        learner = clone(_inside(run.parameters["learner"]))
        # It shares the state, and so the lock that protects it.
        learner._resume(run.classes, run.all_features.size, inner, alg, lock=run.lock)
        return learner

    @property
    def exempt(self) -> dict[str, str]:  # type: ignore[override]
        """Names of checks that do not hold for this learner, each with the reason."""
        learner = _inside(self.learner)
        return learner.exempt if isinstance(learner, Learner) else NOT_SAVED

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        learner = _inside(self.learner)
        tags.classifier_tags.multi_class = takes_many_classes(learner)
        tags.input_tags.positive_only = takes_positive_only(learner)
        return tags

    def _inner_learners(self) -> dict[str, InnerLearner]:
        learner = _inside(self.learner)
        return {"alg": InnerLearner(learner)} if isinstance(learner, Learner) else {}

    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        learner, seed = _inside(self.learner), int(below(rng, 2**31))
        gamma = self.gamma
        if gamma == "theory":
            gamma = theory_gamma(learner, int(self.horizon), n_features, n_classes)
        if isinstance(learner, Learner):
            if learner.feedback != "full":
                raise ValueError(
                    f"BanditReduction is for learners that need the label, and {learner!r} needs "
                    "one bit only: take it as it is"
                )
            learner = seeded(clone(learner), seed)
            learner._validate_params()
            own = new_generator(learner.random_state)
            kernels, alg = learner._begin(n_features, n_classes, own)
        else:
            kernels, alg = new_model(learner, n_classes, seed)
        return reduction_kernels(kernels, _samples(learner)), State(alg, float(gamma), rng)

    def _resume(
        self,
        classes: np.ndarray,
        n_features: int,
        kernels: Kernels,
        state: Any,
        **options: Any,
    ) -> Run:
        if isinstance(state.alg, Model):
            state = state._replace(alg=with_labels(state.alg, classes.tolist()))
        return super()._resume(classes, n_features, kernels, state, **options)


def theory_gamma(learner: Any, T: int, d: int, K: int) -> float:
    """Return the exploration that Theorem 9 asks for in T rounds."""
    if isinstance(learner, Folklore) and learner.curvature == "safe":
        regret = bounds.folklore(T, d, K, learner.B, learner.R, learner.regularization)
    elif isinstance(learner, Aioli):
        regret = bounds.aioli(T, d, learner.B, learner.R, learner.regularization)
    else:
        raise ValueError(
            "gamma='theory' needs a bound on the regret of the learner inside, and is for Folklore "
            f"and Aioli only; with {learner!r}, give a number in [0, 1] as gamma"
        )
    return min(1.0, math.sqrt(K * regret / T))


def _inside(learner: Any) -> Any:
    return Folklore() if learner is None else learner


def _samples(learner: Any) -> bool:
    """Return whether labels are drawn from the probabilities of a model."""
    if isinstance(learner, Learner):
        return isinstance(learner, ProbabilityLearner)
    return gives_probabilities(learner)
