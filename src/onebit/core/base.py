"""What every learner declares, how it starts, and how it validates examples."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import validate_data

from onebit.core.engine import Kernels
from onebit.core.example import Example, Rows
from onebit.core.fair_lock import start_lock
from onebit.core.generator import new_generator, unchanged_on_error
from onebit.core.run import Run
from onebit.core.templates import LoggedRounds, RoundRecord
from onebit.core.terms import Terms, Utility
from onebit.core.validation import (
    check_classes,
    check_example,
    check_names_in,
    check_rows,
    feature_names,
    names_in,
)

LINEAR = "nnz K"
"""The cost of a round of most learners."""


class Cost(NamedTuple):
    """Time of a round, up to a constant: d features, of which nnz are not zero; K classes; round n.

    Attributes
    ----------
    round
        The time by default.
    full
        The time with a full covariance, if the learner has such a form.
    """

    round: str
    full: str | None = None

    @property
    def is_linear(self) -> bool:
        """Whether a round costs O(nnz K), except with a full covariance."""
        return self.round == LINEAR

    def __str__(self) -> str:
        return self.round if self.full is None else f"{self.round}; full: {self.full}"


class InnerLearner(NamedTuple):
    """A learner whose state is a field of another one's.

    Attributes
    ----------
    learner
        Before its first round.
    n_copies
        Number of states `stacked` in the field; None for a single state.
    """

    learner: BaseLearner
    n_copies: int | None = None


class BaseLearner(ClassifierMixin, BaseEstimator, ABC):
    """The part of `Learner` that all its other parts use.

    Parameters are read when a learner starts: at `fit`, at the first `partial_fit` or at the first
    `decide`.
    """

    classes: Any
    random_state: Any
    _run: Run = None  # type: ignore[assignment]  # until it has started
    _terms: Terms | None = None

    # Declared by a subclass

    feedback: str = "bandit"
    """The feedback that the learner needs: "bandit" (right or wrong) or "full" (the label)."""

    exclusive: bool = True
    """Whether exactly one label is right for each example, by the learner's model.

    If not, each label is right with a probability of its own: several may be, or none.
    """

    uses_truth: ClassVar[bool] = False
    """Whether a bandit learner uses the true label, where it is given, as a choice of its own.

    If so, it learns as if it had chosen the true label, with probability one and among all labels;
    otherwise it learns only whether its own label was right.
    """

    takes_rewards: bool = False
    """Whether the learner takes rewards in [0, 1], fractions of right, besides bits.

    If not, its algorithm is about bits. ``learn(decision, correct=rng.random() < reward)`` draws a
    bit that is 1 with this probability: all expectations are those of the reward.
    """

    takes_descriptions: ClassVar[bool] = False
    """Whether labels can be described, see `describe`."""

    _truth_feedback: ClassVar[int] = 1
    """The feedback that kernels get for a true label, if `uses_truth`, and in `teach`."""

    _none_feedback: ClassVar[int] = 0
    """The feedback that kernels get for NONE_OF_THESE, if labels are not `exclusive`."""

    reference: ClassVar[str]
    """Where the algorithm was published."""

    cost: ClassVar[Cost]
    """Time of a round."""

    bound: ClassVar[Any]
    """The proven bound, an `onebit.theory.Bound`, as text and as a number."""

    forms: ClassVar[list[dict[str, Any]]] = [{}]
    """Parameters that together reach every kernel of the class; `warm_up` compiles all of them."""

    sized_forms: ClassVar[list[dict[str, Any]]] = []
    """Parameters of further forms, which defaults become at some sizes: compiled ahead of time."""

    exempt: ClassVar[dict[str, str]] = {}
    """Names of checks that do not hold for this learner, each with the reason."""

    state_version: ClassVar[int] = 0
    """Version of the layout of the state's arrays in files.

    A learner whose arrays get other names, shapes or meanings gets the next version, and reads
    files of earlier ones with `_migrate`.
    """

    @abstractmethod
    def _begin(self, n_features: int, n_classes: int, rng: np.ndarray) -> tuple[Kernels, Any]:
        """Return the kernels for the learner's parameters, and its state before the first round."""

    def _n_weights(self, n_features: int, n_classes: int) -> int:
        """Return how many weights it has in the form of `_at_size`; full covariances count."""
        is_full = self.get_params(deep=False).get("covariance") == "full"
        return (n_features * n_classes) ** (2 if is_full else 1)

    def _at_size(self, n_features: int, n_classes: int) -> BaseLearner:
        """Return this learner with the parameters "auto" replaced by their values at these sizes.

        Files are checked against the state of a smaller learner of the same form.
        """
        return self

    def _inverse_temperature(self, state: Any) -> float | None:
        """Return the b for which softmax(b * scores) are the probabilities of labels.

        If labels are not `exclusive`, each has the probability 1 / (1 + exp(-b * score)). None if
        the scores are not those of a probability model: decisions have no confidence.
        """
        return None

    @classmethod
    def _migrate_parameters(cls, version: int, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a file of an earlier `state_version` as they are named today."""
        return parameters

    def _migrate(self, version: int, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the arrays of a file of an earlier `state_version` in today's layout.

        Arrays that it does not return keep the values of the initial state.
        """
        return arrays

    def _inner_learners(self) -> dict[str, InnerLearner]:
        """Return the learners inside this one, by the fields of its state that hold their states.

        Files store their versions, so that their arrays are migrated, too.
        """
        return {}

    # Compiled rounds, for which a subclass may prepare the state

    def _update(
        self,
        run: Run,
        example: Example,
        label: int,
        probability: float,
        offer: np.ndarray,
        feedback: Any,
    ) -> Any:
        """Learn from one round, while holding the lock; return whether anything was updated."""
        return run.learn(run.packed, example, run.scores, label, probability, offer, feedback)

    def _update_by_grade(
        self,
        run: Run,
        example: Example,
        label: int,
        probability: float,
        offer: np.ndarray,
        grade: float,
    ) -> Any:
        """Learn from one round whose label was right in part, as `_update` does from a bit."""
        learn = run.kernels.grade(run.state)
        return learn(run.packed, example, run.scores, label, probability, offer, grade)

    def _play(
        self, run: Run, rows: Rows, truth: np.ndarray, recorded: RoundRecord | None = None
    ) -> np.ndarray:
        """Play a block of rounds while holding the lock, and return their flags."""
        flags = np.empty(len(truth), dtype=np.uint8)
        full = run.feedback == "full"
        if full:
            run.refuse_retired(truth)
        run.kernels.play(
            run.packed, rows, truth, full, run.scores, run.play_offer, run.p, flags, recorded
        )
        return flags

    def _replay(
        self,
        run: Run,
        rows: Rows,
        logged: LoggedRounds,
        bound: float,
        offer: np.ndarray,
        chosen: np.ndarray,
        taken: np.ndarray,
    ) -> None:
        """Learn a block of rounds of a log, while holding the lock."""
        run.kernels.replay(run.packed, rows, logged, bound, run.scores, offer, run.p, chosen, taken)

    # Worth and cost

    def _knows_probabilities(self, run: Run) -> bool:
        """Return whether the learner has a model of the probability that a label is right."""
        return run.inverse_temperature is not None

    def _fill_valued_policy(
        self,
        run: Run,
        utility: Utility,
        offer: np.ndarray,
        scores: np.ndarray,
        p: np.ndarray,
        greedy: int,
    ) -> int:
        """Change a policy that ignores worth and cost; return the label with the highest value.

        By default the label with the highest value and the greedy one exchange their
        probabilities: the algorithm explores around another label, by as much. A learner that
        draws values from what it knows does better.
        """
        values = utility.values(run.probabilities(scores))
        best = int(offer[np.argmax(values[offer])])
        p[greedy], p[best] = p[best], p[greedy]
        return best

    # Starting

    @property
    def _started(self) -> bool:
        return self._run is not None

    def _start(self, classes: np.ndarray, n_features: int, names: np.ndarray | None = None) -> Run:
        """Start with a new run; on an error nothing has changed."""
        self._validate_params()
        kernels, state = self._begin(n_features, classes.size, new_generator(self.random_state))
        return self._resume(classes, n_features, kernels, state, feature_names=names)

    def _resume(
        self,
        classes: np.ndarray,
        n_features: int,
        kernels: Kernels,
        state: Any,
        **options: Any,
    ) -> Run:
        """Start with a given state."""
        parameters = {name: _copied(value) for name, value in self.get_params(deep=False).items()}
        self._run = Run(
            classes,
            n_features,
            kernels,
            state,
            self.feedback,
            parameters,
            self._inverse_temperature(state),
            exclusive=bool(self.exclusive),
            **options,
        )
        return self._run

    def _validated_classes(self) -> np.ndarray:
        if self.classes is None:
            name = type(self).__name__
            raise ValueError(f"{name} does not know its labels yet: {name}(classes=[...])")
        return check_classes(self.classes)

    def _validated(self, check: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``check(self, *arguments)``, which validates all arguments of a call.

        It also starts a learner that has not started. An invalid argument must leave the learner
        unchanged: so a copy is started, whose run becomes the learner's if all arguments are valid.
        """
        if not self._started:
            with start_lock(self), unchanged_on_error(self.random_state):
                if not self._started:
                    first = copy.copy(self)
                    found = check(first, *arguments)
                    if self.__dict__.setdefault("_run", first._run) is first._run:
                        return found
        return check(self, *arguments)

    # Input validation

    def _prepare_example(self, x: Any) -> tuple[Run, Example]:
        """Validate one x; start the learner if it has not started."""
        run = self._run
        if run is None:
            example = check_example(x, None, is_first=True)
            names = names_in(x)
            known = None if names is None else np.array(names, dtype=object)
            return self._start(self._validated_classes(), example.n_features, known), example
        if run.feature_names is not None and type(x) not in (Example, np.ndarray):
            check_names_in(x, run.feature_names)
        return run, check_example(x, run.all_features)

    def _prepare_rows(self, X: Any) -> tuple[Run, Rows]:
        """Validate the rows of X; start the learner if it has not started."""
        rows = check_rows(X, self, keep_float32=True)
        run = self._run
        if run is None:
            run = self._start(self._validated_classes(), rows.n_features, feature_names(X))
        else:
            self._check_features(run, X, rows)
        return run, rows

    def _check_features(self, run: Run, X: Any, rows: Rows) -> None:
        """Raise unless the features are those that the learner started with."""
        validate_data(self, X, skip_check_array=True, reset=False)
        if rows.n_features != run.all_features.size:  # another thread started it anew
            raise ValueError(
                f"X has {rows.n_features} features, but {type(self).__name__} is expecting "
                f"{run.all_features.size} features as input"
            )


def _copied(parameter: Any) -> Any:
    """Return a copy of a parameter: an estimator may be changed after the start."""
    return parameter if callable(parameter) else clone(parameter, safe=False)
