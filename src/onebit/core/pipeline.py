"""Pipelines: steps that turn records into examples, and a learner."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import ismethod, signature
from os import PathLike
from typing import Any, Never, overload

import numpy as np
import scipy.sparse as sp
from sklearn import pipeline
from sklearn.base import OneToOneFeatureMixin

from onebit.core import storage
from onebit.core.decision import Decision, check_decision, check_decisions, refuse_positional
from onebit.core.example import Example
from onebit.core.explanation import Explanation, Naming, naming_by, naming_of
from onebit.core.labels import as_described
from onebit.core.learner import Learner
from onebit.core.lists import DecisionList
from onebit.core.validation import check_example


def make_pipeline(*steps: Any) -> Pipeline:
    """Return a pipeline of steps and a learner, which decides about records.

    Parameters
    ----------
    *steps : transformers, and last a Learner
        Steps of `onebit.features`, and any transformers of scikit-learn. A pipeline of
        scikit-learn's own `make_pipeline` has no `decide`; ``make_pipeline(*pipeline)`` has.

    Returns
    -------
    Pipeline

    Examples
    --------
    >>> from onebit import OneBitClassifier, make_pipeline
    >>> from onebit.features import Records
    >>> learner = OneBitClassifier(classes=["billing", "support"], random_state=0)
    >>> router = make_pipeline(Records(n_features=1024), learner)
    >>> for _ in range(20):
    ...     for subject, desk in [("Card charged twice", "billing"), ("App is down", "support")]:
    ...         decision = router.decide({"subject": subject})
    ...         router.learn(decision, correct=decision.label == desk)
    >>> router.predict([{"subject": "My card"}, {"subject": "Your app"}]).tolist()
    ['billing', 'support']
    """
    if not steps or not isinstance(steps[-1], Learner):
        last = f"got {type(steps[-1]).__name__}" if steps else "got none"
        if steps and isinstance(steps[-1], pipeline.Pipeline):
            last += ", whose steps are make_pipeline(*pipeline)"
        raise TypeError(f"the last step of a pipeline is a learner of onebit; {last}")
    return Pipeline(pipeline.make_pipeline(*steps).steps)


class Pipeline(pipeline.Pipeline):
    """A scikit-learn pipeline with the online interface of the learner at its end.

    It has all methods of the learner (`decide`, `learn`, `policy`, `scores`, `partial_fit`, ...)
    and the attributes of a started learner, such as `changes_`. Where a learner takes examples, a
    pipeline takes the input of its first step, such as records. Only `fit` fits steps. Made by
    `onebit.make_pipeline`; pipelines of scikit-learn's `make_pipeline` lack these methods.
    """

    _described_by_texts = False

    @overload
    def decide(
        self, record: Any, among: Any = None, *, top: None = None, **options: Any
    ) -> Decision: ...
    @overload
    def decide(
        self, record: Any, among: Any = None, *, top: int, **options: Any
    ) -> DecisionList: ...
    def decide(
        self, record: Any, among: Any = None, *, top: int | None = None, **options: Any
    ) -> Decision | DecisionList:
        """Choose a label for one record.

        Parameters
        ----------
        record
            One input of the first step.
        among : array-like of labels, optional
            The labels on offer.
        top : int, optional
            Choose a list of this many labels.
        **options
            Passed to the learner's `decide`.

        Returns
        -------
        Decision; DecisionList if `top` is given
            It holds the encoded example, so learning from it runs no step again.
        """
        if top is not None:
            options["top"] = top
        if self._described_by_texts and isinstance(record, Mapping):
            self._described_by_texts = False
            warnings.warn(_TEXTS_FOR_RECORDS, stacklevel=2)
        return _encoded(self.steps[-1][1].decide(self._example(record), among, **options))

    def explain(
        self,
        record: Any,
        label: Any = None,
        against: Any = None,
        among: Any = None,
        *,
        names: Sequence[str] | None = None,
    ) -> Explanation:
        """Return what spoke for a label and against another one, in the words of the record.

        Parameters
        ----------
        record
            One input of the first step.
        label, against, among, names
            As in the learner's `explain`. Without `names`, those of `Records` are used, whatever
            steps after it keep the columns; of other steps, those of `get_feature_names_out`.

        Returns
        -------
        Explanation
        """
        example = self._example(record)
        naming = None if names is not None else self._naming(record, example)
        return self.steps[-1][1]._explain(example, label, against, among, naming, names)

    def learn(self, decision: Decision | DecisionList, *unnamed: Never, **feedback: Any) -> None:
        """Learn from the feedback for a decision or a list, now or later, in any order.

        Parameters
        ----------
        decision : Decision or DecisionList
            From `decide`, or made by hand from a log with the record as its `x`, which is then
            replaced by the example.
        **feedback
            `correct`, `truth`, `taken` or `reward`, passed to the learner's `learn`.
        """
        refuse_positional("learn", unnamed)
        if isinstance(decision, DecisionList):
            for place in decision:
                self._with_example(place)
        else:
            self._with_example(check_decision(decision))
        self.steps[-1][1].learn(decision, **feedback)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the steps and the learner, its random generator included, to a safetensors file.

        `onebit.load` reads it back. Steps are stored as their parameters: those of
        `onebit.features`, and scikit-learn's `FeatureHasher`, `HashingVectorizer`, `Binarizer` and
        `Normalizer`. Others, which may have been fitted, are refused.
        """
        storage.write(path, self.steps[-1][1], list(self._transformers()))

    def __getattr__(self, name: str) -> Any:
        _, learner = (self.__dict__.get("steps") or [("", None)])[-1]  # absent while unpickling
        if _is_learned(name):
            return getattr(learner, name)
        method = None if name.startswith("_") else getattr(learner, name, None)
        if not ismethod(method):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        parameters = signature(method)
        first = next(iter(parameters.parameters), "")
        encode = _ENCODERS.get(first)

        @wraps(method)
        def after_the_steps(*args: Any, **kwargs: Any) -> Any:
            bound = parameters.bind(*args, **kwargs)
            if encode is not None:
                bound.arguments[first] = encode(self, bound.arguments[first])
            result = method(*bound.args, **bound.kwargs)
            if name == "decide_many":
                return [_encoded(decision) for decision in result]
            return self if result is learner else result

        return after_the_steps

    def __dir__(self) -> list[str]:
        learner = self.steps[-1][1]
        names = (name for name in dir(learner) if not name.startswith("_"))
        shared = (n for n in names if _is_learned(n) or ismethod(getattr(learner, n, None)))
        return sorted({*super().__dir__(), *shared})

    def _transformers(self) -> Iterator[Any]:
        for _, step in self.steps[:-1]:
            if step is not None and not isinstance(step, str):  # "passthrough"
                yield step

    def _matrix(self, records: Any) -> Any:
        for step in self._transformers():
            records = step.transform(records)
        return records

    def _example(self, record: Any) -> Example:
        for step in self._transformers():
            record = (
                step.encode(record) if hasattr(step, "encode") else _transform_one(step, record)
            )
        return record if isinstance(record, Example) else check_example(record, None)

    def _naming(self, record: Any, example: Example) -> Naming | None:
        """Return how the steps name columns; None if none of them names any."""
        first, *others = [*self._transformers(), None]
        if hasattr(first, "names") and all(
            step is None or isinstance(step, OneToOneFeatureMixin) for step in others
        ):
            return naming_by(first.names(record))
        if first is None:
            return None
        try:
            names = pipeline.Pipeline(self.steps[:-1]).get_feature_names_out()
        except (AttributeError, ValueError):  # steps without names, or not fitted
            return None
        return naming_of(example, names)

    def _with_example(self, decision: Decision) -> Decision:
        if not isinstance(decision.x, Example):
            decision.x = self._example(decision.x)
        return decision

    def _with_examples(self, decisions: Iterable[Decision]) -> list[Decision]:
        return [self._with_example(decision) for decision in check_decisions(decisions)]


_TEXTS_FOR_RECORDS = (
    "labels are described by texts and the examples are records with fields, so they have nothing "
    "in common: describe a label by a record with the same fields, as {'subject': 'card, invoice'}"
)


def _encoded(decision: Any) -> Any:
    """Note in a decision, or in those of a list, that its x needs no steps, also from a dict."""
    for place in decision if isinstance(decision, DecisionList) else [decision]:
        place._is_encoded = True
    return decision


def _is_learned(name: str) -> bool:
    """Return whether an attribute is one of the started learner, not one about the input.

    Attributes about the input, such as `n_features_in_`, are those of the first step.
    """
    public = name.endswith("_") and not name.startswith("_")
    return public and not hasattr(pipeline.Pipeline, name)


def _with_described(pipeline: Pipeline, classes: Any) -> Any:
    """Return labels, with the descriptions among them encoded."""
    if not isinstance(classes, Mapping):
        return classes
    if any(isinstance(record, str) for record in classes.values()):
        pipeline._described_by_texts = True
    return {
        label: None if record is None else pipeline._example(as_described(record))
        for label, record in classes.items()
    }


_ENCODERS: dict[str, Callable[[Pipeline, Any], Any]] = {
    "X": Pipeline._matrix,
    "x": Pipeline._example,
    "decisions": Pipeline._with_examples,
    "descriptions": _with_described,
    "classes": _with_described,
}
"""How the first argument of a learner's method is encoded, by the argument's name."""


def _transform_one(step: Any, x: Any) -> Any:
    """Return one x, transformed by a step that takes many."""
    if isinstance(x, Example):
        arrays = x.values, x.indices.astype(np.int32), [0, x.values.size]
        X: Any = sp.csr_array(arrays, shape=(1, x.n_features))
    elif hasattr(x, "to_frame"):  # a row of pandas keeps its names
        X = x.to_frame().T
    else:
        X = x if getattr(x, "ndim", 0) == 2 else [x]
    X = step.transform(X)
    if X.shape[0] != 1:
        raise ValueError(f"one record is needed; got {X.shape[0]}")
    return X if sp.issparse(X) else np.asarray(X)[0]
