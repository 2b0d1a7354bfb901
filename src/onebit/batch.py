"""Online-to-batch conversion: a fixed classifier from a learner that played a sample."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags

from onebit.core import Learner
from onebit.core.example import slice_rows
from onebit.core.generator import random_state_of


class FrozenClassifier(ClassifierMixin, BaseEstimator):
    """The mean probabilities of snapshots of a learner; it does not learn.

    `to_batch` makes it. It is a fitted scikit-learn classifier whose `fit` raises an error: for
    tools that fit their estimator, such as `CalibratedClassifierCV`, wrap it in scikit-learn's
    `FrozenEstimator`. Cloning returns the same object.

    Parameters
    ----------
    learners : list of Learner
        Copies of one learner, each with `predict_proba`.
    times : list of int
        The round, counted from 1, that each was about to play.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_features_in_ : int
        Number of features.
    """

    def __init__(self, learners: list[Any], times: list[int]) -> None:
        self.learners = learners
        self.times = times

    @property
    def classes_(self) -> np.ndarray:
        """The labels."""
        return self.learners[0].classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self.learners[0].n_features_in_

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Raise TypeError: what it learned is fixed."""
        raise TypeError("a FrozenClassifier does not learn: make another one with to_batch")

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label for each row of `X`, the mean over the learners.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.mean([learner.predict_proba(X) for learner in self.learners], axis=0)

    def predict(self, X: Any) -> np.ndarray:
        """Return the label with the largest probability for each row of `X`."""
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.learners[0])


def to_batch(
    learner: Learner, X: Any, y: Any, snapshots: int = 1, *, random_state: Any = None
) -> FrozenClassifier:
    """Play a sample as rounds, and freeze the learner as it was at random times.

    A learner that does well online, round by round, is a good classifier at a random time. If the T
    rows are drawn i.i.d., a new x is to the learner what the x of any round was. So the expected
    log loss of the learner as it was before round tau, with tau drawn uniformly from 1 to T,
    exceeds that of the best weights by at most Reg(T) / T, where Reg is the bound on its regret:
    `onebit.theory.bounds.folklore` for `Folklore`. For a `BanditReduction` it is K Reg(T) / (gamma
    T), with Reg that of the learner inside.

    The times of several snapshots are drawn without replacement. Each of them alone is uniform on 1
    to T, and the loss of the mean probabilities is at most the mean of the losses (Jensen's
    inequality): so what holds for one snapshot holds for any number of them, and more snapshots
    leave less to chance. With T snapshots it is the mean over all rounds.

    Parameters
    ----------
    learner : Learner
        One with `predict_proba`. It is not changed: a copy plays, from its first round.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The rows are played in their order. Shuffle them if that order carries information.
    y : array-like of shape (n_samples,)
        A bandit learner is told only whether its labels are right.
    snapshots : int from 1 to n_samples, default=1
        Number of times. Each snapshot takes the memory of a learner.
    random_state : int, RandomState instance or None, default=None
        Seed of the times. None is the `random_state` of the learner.

    Returns
    -------
    FrozenClassifier

    References
    ----------
    N. Cesa-Bianchi, A. Conconi and C. Gentile. On the generalization ability of on-line learning
    algorithms. IEEE Transactions on Information Theory 50 (2004), 2050-2057.

    N. Agarwal, S. Kale and J. Zimmert. Efficient methods for online multiclass logistic regression.
    ALT 2022; arXiv:2110.03020. Section 4.3.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onebit import Folklore
    >>> from onebit.batch import to_batch
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> scaler = StandardScaler().fit(X_train)
    >>> folklore = Folklore(B=3, R=5, random_state=0)
    >>> frozen = to_batch(folklore, scaler.transform(X_train), y_train, snapshots=10)
    >>> round(frozen.score(scaler.transform(X_test), y_test), 3)
    0.978
    """
    if not hasattr(learner, "predict_proba"):
        raise ValueError(f"to_batch takes the mean of probabilities, and {learner!r} has none")
    playing: Learner = clone(learner)
    run, rows, truth = playing._prepare_rounds(X, y, y if playing.classes is None else None)
    if not isinstance(snapshots, Integral) or not 1 <= snapshots <= truth.size:
        raise ValueError(
            f"snapshots is an int from 1 to the number of rows, {truth.size}; got {snapshots!r}"
        )
    seed = random_state_of(playing.random_state if random_state is None else random_state)
    times = np.sort(1 + seed.choice(truth.size, int(snapshots), replace=False)).tolist()
    learners, played = [], 0
    for tau in times:
        for _ in playing._rounds(run, slice_rows(rows, played, tau - 1), truth[played : tau - 1]):
            pass
        played = tau - 1
        learners.append(copy.deepcopy(playing))
    return FrozenClassifier(learners, times)
