"""The base class of all learners: a scikit-learn classifier that decides and learns by rounds."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax, softmax

from onebit.core import registry, storage
from onebit.core.explanation import ExplanationMixin
from onebit.core.labels import LabelsMixin
from onebit.core.rounds import RoundsMixin


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

    def save(self, path: str | PathLike[str]) -> None:
        """Write the learner, its random generator included, to a safetensors file.

        `onebit.load` reads it back.
        """
        storage.write(path, self)


class ProbabilityLearner(Learner):
    """A learner whose scores are the logarithms of probabilities, up to a constant."""

    def _inverse_temperature(self, state: Any) -> float | None:
        return 1.0

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each label for each row of `X`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return softmax(self._evaluate(X)[1], axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of `predict_proba`, exact also where those are nearly zero."""
        return log_softmax(self._evaluate(X)[1], axis=1)
