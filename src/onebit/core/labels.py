"""Labels that are added, retired and brought back while a learner runs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from onebit.core.base import BaseLearner
from onebit.core.offer import check_among, is_known, label_list
from onebit.core.run import Run
from onebit.core.state import grown
from onebit.core.validation import check_more_classes


class LabelsMixin(BaseLearner):
    """`add_classes` and `retire_classes`."""

    def add_classes(self, classes: Any) -> Self:
        """Add labels; what was learned about the others is kept.

        A new label starts as every label did before the first round. A retired label comes back
        with what was learned about it.

        Parameters
        ----------
        classes : array-like of labels

        Returns
        -------
        self
        """
        given, run = label_list(classes, "classes"), self._started_run("add_classes")
        with run.lock:
            back = {run.positions[label] for label in given if is_known(label, run.positions)}
            for k in sorted(back - run.retired):
                raise ValueError(f"{run.labels[k]!r} is one of the classes already")
            new = [label for label in given if not is_known(label, run.positions)]
            if new:
                self._grow(run, check_more_classes(run.classes, new))
            run.retire(run.retired - back)
        return self

    def retire_classes(self, classes: Any) -> Self:
        """Stop offering labels, until `add_classes` brings them back.

        They stay in `classes_`, and have probability zero.

        Parameters
        ----------
        classes : array-like of labels

        Returns
        -------
        self
        """
        run = self._started_run("retire_classes")
        with run.lock:
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
        """The labels in `classes_` that are retired."""
        check_is_fitted(self)
        return self._run.classes[sorted(self._run.retired)]

    def _started_run(self, verb: str) -> Run:
        """Return the run; raise ValueError if the learner has not started."""
        if not self._started:
            raise ValueError(
                f"{verb} is for a learner that has started; before, give all labels as "
                f"{type(self).__name__}(classes=[...])"
            )
        return self._run

    def _grow(self, run: Run, classes: np.ndarray) -> None:
        """Add classes, while holding the lock; on an error nothing has changed."""
        name, n = type(self).__name__, run.all_features.size
        if not get_tags(self).classifier_tags.multi_class:
            raise ValueError(f"{name} takes no more classes: it is for two")
        # The form stays, even where the number of classes had decided it.
        form = clone(self).set_params(**run.parameters)._at_size(n, run.classes.size)
        try:
            kernels, first = form._begin(n, classes.size, run.state.rng.copy())
            state = grown(run.state, first)
        except ValueError as error:
            raise ValueError(f"{name} takes no more classes: {error}") from None
        run.replace_state(classes, kernels, state, form.get_params(deep=False))
