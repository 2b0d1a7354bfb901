"""The base class of all learners: a scikit-learn classifier that decides and learns by rounds."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_softmax, softmax
from sklearn.utils.metaestimators import available_if

from onebit.core import registry, storage
from onebit.core.explanation import ExplanationMixin
from onebit.core.labels import LabelsMixin
from onebit.core.rounds import RoundsMixin


def _knows_probabilities(learner: Any) -> bool:
    return not learner.exclusive or hasattr(learner, "predict_proba")


class Learner(RoundsMixin, LabelsMixin, ExplanationMixin):
    """A classifier that learns from feedback on its own decisions.

    A subclass returns its kernels and its initial state in `_begin`, and sets the class attributes
    that `BaseLearner` declares.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "classes": ["array-like", None],
        "random_state": ["random_state"],
    }
    """The parameters of every learner; a subclass declares its own in addition."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._parameter_constraints = cls._parameter_constraints | Learner._parameter_constraints
        registry.register(cls)

    @available_if(_knows_probabilities)
    def right_proba(self, X: Any) -> np.ndarray:
        """Return the probability that each label is right, for each row of `X`.

        If labels are `exclusive`, exactly one is right, and this is `predict_proba`. Otherwise each
        label has a probability of its own, and rows do not add up to one.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self.predict_proba(X) if self.exclusive else expit(self._evaluate(X)[1])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the learner, its random generator included, to a safetensors file.

        `onebit.load` reads it back.
        """
        storage.write(path, self)


class ProbabilityLearner(Learner):
    """A learner whose scores are the logarithms of probabilities, up to a constant.

    If labels are not `exclusive`, scores are log-odds, one for each label.
    """

    def _inverse_temperature(self, state: Any) -> float | None:
        return 1.0

    @available_if(lambda self: self.exclusive)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label for each row of `X`; rows add up to one.

        Labels that are not `exclusive` have `right_proba` only.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return softmax(self._evaluate(X)[1], axis=1)

    @available_if(lambda self: self.exclusive)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`, exact also where those are nearly zero."""
        return log_softmax(self._evaluate(X)[1], axis=1)
