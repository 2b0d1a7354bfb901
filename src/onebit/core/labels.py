"""Labels that come and go."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from onebit.core.base import BaseLearner
from onebit.core.offer import check_among, is_known, label_list
from onebit.core.started import Started
from onebit.core.state import grown
from onebit.core.validation import check_more_classes


class LabelsMixin(BaseLearner):
    """Labels that are added to a running learner, retired, and brought back."""

    def add_classes(self, classes: Any) -> Self:
        """Take more labels, with all that was learned of those there are.

        A new label starts as all did before the first round. One that was retired comes back with
        what was known of it.

        Parameters
        ----------
        classes : array-like of labels

        Returns
        -------
        self
        """
        given, run = label_list(classes, "classes"), self._running("add_classes")
        with run.turns:
            back = {run.positions[label] for label in given if is_known(label, run.positions)}
            for k in sorted(back - run.retired):
                raise ValueError(f"{run.labels[k]!r} is one of the classes already")
            new = [label for label in given if not is_known(label, run.positions)]
            if new:
                self._grow(run, check_more_classes(run.classes, new))
            run.retire(run.retired - back)
        return self

    def retire_classes(self, classes: Any) -> Self:
        """Let labels be on offer no more, until `add_classes` brings them back.

        They stay in `classes_`, with probability zero.

        Parameters
        ----------
        classes : array-like of labels

        Returns
        -------
        self
        """
        run = self._running("retire_classes")
        with run.turns:
            gone = check_among(classes, run.positions, run.classes, "classes").tolist()
            for k in gone:
                if k in run.retired:
                    raise ValueError(f"{run.labels[k]!r} is retired already")
            if len(run.retired) + len(gone) == run.classes.size:
                raise ValueError("no label would be left on offer")
            run.retire(run.retired.union(gone))
        return self

    @property
    def retired_classes_(self) -> np.ndarray:
        """Those of `classes_` that are retired."""
        check_is_fitted(self)
        return self._run.classes[sorted(self._run.retired)]

    def _running(self, verb: str) -> Started:
        """Return what the learner has, if it has started."""
        if not self._started:
            raise ValueError(
                f"{verb} is for a learner that has started; before, give all labels as "
                f"{type(self).__name__}(classes=[...])"
            )
        return self._run

    def _grow(self, run: Started, classes: np.ndarray) -> None:
        """Take more classes, while holding the learner; on an error nothing has changed."""
        name, n = type(self).__name__, run.all_features.size
        if not get_tags(self).classifier_tags.multi_class:
            raise ValueError(f"{name} takes no more classes: it is for two")
        # Its form, be it one that the number of classes decided, stays.
        form = clone(self).set_params(**run.parameters)._at_size(n, run.classes.size)
        try:
            kernels, first = form._begin(n, classes.size, run.state.rng.copy())
            state = grown(run.state, first)
        except ValueError as error:
            raise ValueError(f"{name} takes no more classes: {error}") from None
        run.take(classes, kernels, state, form.get_params(deep=False))
