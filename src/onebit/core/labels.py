"""Labels that are described, added, retired and brought back while a learner runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from onebit.core.base import BaseLearner
from onebit.core.example import Example
from onebit.core.offer import check_among, is_known, label_list
from onebit.core.run import Run
from onebit.core.state import grown
from onebit.core.validation import check_more_classes, short


def as_described(record: Any) -> Any:
    """Return the record that describes a label; in a text, underscores become spaces.

    So the name of a label, such as "card_arrival", is a description of it.
    """
    return record.replace("_", " ") if isinstance(record, str) else record


class LabelsMixin(BaseLearner):
    """`describe`, `add_classes` and `retire_classes`."""

    def describe(self, descriptions: Mapping[Any, Any]) -> Self:
        """Describe what labels mean, before the first round or at any time.

        A description is the mean of the prior of a label's weights: without any feedback, examples
        that are similar to it are likely to have this label. How much descriptions are worth is
        learned from the feedback, for all labels together.

        Parameters
        ----------
        descriptions : mapping from labels to examples
            An array or a sparse row for each label, in the form of x; in a pipeline, a record as it
            takes them, such as the label's name as a text. A label that has a description already
            gets another one; labels that are not mentioned keep theirs.

        Returns
        -------
        self
        """
        if not isinstance(descriptions, Mapping) or not descriptions:
            raise ValueError(
                f"describe takes a mapping from labels to examples; got {short(descriptions)}"
            )
        run, examples = self._validated(LabelsMixin._check_descriptions, dict(descriptions))
        with run.lock:
            self._describe(run, examples)
        return self

    def _check_descriptions(self, descriptions: dict[Any, Any]) -> tuple[Run, dict[int, Example]]:
        """Validate the argument of `describe`."""
        if not self.takes_descriptions:
            raise ValueError(f"{type(self).__name__} takes no descriptions of labels")
        found = {}
        for label, x in descriptions.items():
            try:
                run, example = self._prepare_example(x)
            except (TypeError, ValueError) as error:
                raise type(error)(f"the description of {short(label)}: {error}") from None
            found[run.position_of(label)] = example
        return run, found

    def _describe(self, run: Run, examples: dict[int, Example]) -> None:
        """Describe the labels at some positions, while holding the lock."""
        raise NotImplementedError

    def add_classes(self, classes: Any) -> Self:
        """Add labels; what was learned about the others is kept.

        A new label starts as every label did before the first round; if it has a description, with
        what was learned about labels with similar ones. A retired label comes back with what was
        learned about it.

        Parameters
        ----------
        classes : array-like of labels, or mapping from labels to descriptions
            Descriptions are as in `describe`; None where there is none.

        Returns
        -------
        self
        """
        given, run = label_list(classes, "classes"), self._started_run("add_classes")
        descriptions = _descriptions_in(classes)
        for x in descriptions.values():
            self._prepare_example(x)
        if descriptions and not self.takes_descriptions:
            raise ValueError(f"{type(self).__name__} takes no descriptions of labels")
        with run.lock:
            back = {run.positions[label] for label in given if is_known(label, run.positions)}
            for k in sorted(back - run.retired):
                raise ValueError(f"{run.labels[k]!r} is one of the classes already")
            new = [label for label in given if not is_known(label, run.positions)]
            if new:
                self._grow(run, check_more_classes(run.classes, new))
            run.retire(run.retired - back)
            if descriptions:
                self._describe(run, self._check_descriptions(descriptions)[1])
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
            raise ValueError(f"{name} cannot take further classes: it is for two")
        # The form stays, even where the number of classes had decided it.
        form = clone(self).set_params(**run.parameters)._at_size(n, run.classes.size)
        try:
            kernels, first = form._begin(n, classes.size, run.state.rng.copy())
            state = grown(run.state, first)
        except ValueError as error:
            raise ValueError(f"{name} cannot take further classes: {error}") from None
        run.new_labels |= dict.fromkeys(range(run.classes.size, classes.size), 0)
        run.replace_state(classes, kernels, state, form.get_params(deep=False))


def _descriptions_in(classes: Any) -> dict[Any, Any]:
    """Return the descriptions of labels to be added, where there are any."""
    given = classes.items() if isinstance(classes, Mapping) else ()
    return {label: x for label, x in given if x is not None}
