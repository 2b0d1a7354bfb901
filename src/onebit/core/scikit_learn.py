"""The interface of a scikit-learn classifier: fitting, predictions and attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from onebit.core.base import BaseLearner
from onebit.core.batches import BatchesMixin
from onebit.core.blocks import blocks
from onebit.core.choosing import Options, options_of
from onebit.core.example import Example, Rows, count_rows, most_in_block, one_row, slice_rows
from onebit.core.generator import unchanged_on_error
from onebit.core.run import Run
from onebit.core.validation import (
    check_classes,
    check_labels,
    check_rows,
    feature_names,
    positions_of,
)


class ScikitLearnMixin(BatchesMixin):
    """`fit`, `partial_fit`, `predict` and the attributes of a scikit-learn classifier."""

    def fit(self, X: Any, y: Any) -> Self:
        """Start anew, and play the rows as rounds, once, in their order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            A bandit learner gets only the bit whether its label is right.

        Returns
        -------
        self
        """
        rows = check_rows(X, self, keep_float32=True)
        y = check_labels(y, count_rows(rows), self)
        classes = check_classes(y if self.classes is None else self.classes)
        truth = positions_of(classes, y)
        names = feature_names(X)
        with unchanged_on_error(self.random_state):
            run = self._start(classes, rows.n_features, names)
        for _ in self._rounds(run, rows, truth):
            pass
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Continue with more rows as rounds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, optional
            All labels; needed in the first call, unless they are a parameter of the learner.

        Returns
        -------
        self
        """
        for _ in self._rounds(*self._prepare_rounds(X, y, classes)):
            pass
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the greedy label of each row of `X`."""
        run, scores, _ = self._evaluate(X)
        return run.classes[np.argmax(scores, axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the scores of each row of `X`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes); for two classes (n_samples,)
            For two classes, as scikit-learn expects it, the score of the second minus that of the
            first.
        """
        scores = self._evaluate(X)[1]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def scores(self, X: Any) -> np.ndarray:
        """Return the score of each label for each row of `X`, as the policy uses them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Also for two classes, unlike in `decision_function`.
        """
        return self._evaluate(X)[1]

    def policy(
        self,
        X: Any,
        among: Any = None,
        *,
        worth: Mapping[Any, float] | None = None,
        cost: Mapping[Any, float] | None = None,
        explore: bool = True,
    ) -> np.ndarray:
        """Return, for each row of `X`, the probabilities with which `decide` chooses the labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        among : array-like of labels, optional
            The labels on offer, in every row; by default all that are not retired.
        worth, cost, explore : optional
            As in `decide`. A limit on exploration counts as if each row were the next decision.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Zero for labels that are not on offer.
        """
        options = options_of(worth, cost, explore)
        if self._started or self.classes is None:
            return self._evaluate(X, among, with_policy=True, options=options)[2]
        first = clone(self)  # it starts as this one will
        first._terms = self._terms
        if isinstance(X, Example):
            first._prepare_example(X)
        else:
            first._prepare_rows(X)
        return first.policy(X, among, worth=worth, cost=cost, explore=explore)

    @property
    def classes_(self) -> np.ndarray:
        """All labels, including retired ones."""
        return self._of_run("classes_", lambda run: run.classes)

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return self._of_run("n_features_in_", lambda run: run.all_features.size)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The names of the features, if the learner started with a data frame."""
        return self._of_run("feature_names_in_", lambda run: run.feature_names)

    def _of_run(self, name: str, get: Callable[[Run], Any]) -> Any:
        """Return an attribute that exists once the learner has started."""
        run = self._run
        found = None if run is None else get(run)
        if found is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return found

    def __sklearn_is_fitted__(self) -> bool:
        return self._started

    @property
    def coef_(self) -> np.ndarray:
        """Weights, of shape (n_classes, n_features)."""
        if not self._started:
            raise AttributeError(f"this {type(self).__name__} has not started: it has no weights")
        if not hasattr(self._run.state, "W"):
            raise AttributeError(f"the scores of this {type(self).__name__} are not linear in x")
        with self._run.lock:
            return np.array(np.asarray(self._run.state.W).T, order="C")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # One bit a row, in one pass, cannot reach the score of a batch solver.
        tags.classifier_tags.poor_score = self.feedback == "bandit"
        return tags

    def _prepare_evaluation(self, X: Any) -> tuple[Run, Rows]:
        """Validate rows to evaluate; a single `Example` is one row, and faster."""
        if isinstance(X, Example):
            run, example = self._validated(BaseLearner._prepare_example, X)
            return run, one_row(example)
        check_is_fitted(self)
        run, rows = self._run, check_rows(X, self, keep_float32=True)
        self._check_features(run, X, rows)
        return run, rows

    def _evaluate(
        self,
        X: Any,
        among: Any = None,
        *,
        with_policy: bool = False,
        options: Options | None = None,
    ) -> tuple[Run, np.ndarray, np.ndarray]:
        """Return the run, the scores, and the policy of each row if `with_policy`."""
        run, rows = self._prepare_evaluation(X)
        with run.lock:  # classes may be added before the last row
            evaluate = run.kernels.evaluate(count_rows(rows))
            packed, offer = run.packed, run.current_offer(among)
            scores = np.empty((count_rows(rows), run.classes.size))
            p = np.empty_like(scores[: None if with_policy else 0])
            retired = sorted(run.retired)
            if with_policy and (options is not None or self._terms is not None):
                # At once: the terms are for the current classes.
                conditions = self._conditions(run, options)
                all_rows = slice_rows(rows, 0, count_rows(rows))
                self._fill_each_policy(run, conditions, all_rows, scores, offer, p)
                scores[:, retired] = -np.inf
                return run, scores, p
        for lo, hi in blocks(len(scores), most=most_in_block(rows)):
            with run.lock:
                evaluate(packed, slice_rows(rows, lo, hi), scores[lo:hi], offer, p[lo:hi])
        scores[:, retired] = -np.inf
        return run, scores, p
