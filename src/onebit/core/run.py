"""The run of a learner that has started: its state, labels, compiled rounds and lock."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import expit

from onebit.core import storage
from onebit.core.confidence import right_probability_entry
from onebit.core.decision import MAX_REMEMBERED_IDS, id_of, key_of
from onebit.core.engine import Kernels, kernels_named
from onebit.core.example import INDEX, inspect_entry
from onebit.core.fair_lock import FairLock
from onebit.core.offer import check_among
from onebit.core.terms import KNOWN_AFTER, Window
from onebit.core.validation import unknown

_TOO_MANY = MAX_REMEMBERED_IDS + MAX_REMEMBERED_IDS // 4


class Run:
    """The run of a learner, from its start until it starts anew.

    A learner that starts anew gets another run by a single assignment, so a thread that is still
    deciding with the old one finds it complete. `lock` protects all that changes. Labels are only
    added, and keep their positions.

    Attributes
    ----------
    classes, labels, positions
        The labels as an array, as a list, and their positions in both.
    all_features, all_labels
        The indices of all features, and the positions of all labels.
    feature_names
        None if the learner did not start with a data frame.
    kernels, state
        As `_begin` returned them.
    parameters
        The learner's parameters at the start.
    packed
        The state as single rounds take it.
    decide, learn
        The compiled single rounds; None until they are first needed.
    choose
        The same function as `decide`, also in a run with terms, where `decide` is None: so rounds
        without terms spend no time on looking for them.
    scores, p
        Arrays for the scores and the policy of a single round.
    retired
        The positions of retired labels.
    default_offer, default_among
        The labels on offer by default, as kernels and as decisions have them.
    inverse_temperature
        None if the learner has no probability model, and decisions no confidence.
    exclusive
        Whether exactly one label is right, by that model.
    right_probability
        Computes the confidence, if there is one; compiled with `decide`.
    learned
        The keys of decisions that were learned from, the oldest first.
    window
        Which of the last decisions explored, if that is limited.
    new_labels
        The number of bits for each label that is new, by its position.
    new_window
        Which of the last decisions chose a label that was new, if that is limited.
    conditions
        A cache of the terms that decisions have by default; None until they are needed.
    """

    __slots__ = (
        "_state",
        "all_features",
        "all_labels",
        "choose",
        "classes",
        "conditions",
        "decide",
        "default_among",
        "default_offer",
        "exclusive",
        "feature_names",
        "feedback",
        "inverse_temperature",
        "kernels",
        "labels",
        "learn",
        "learned",
        "lock",
        "new_labels",
        "new_window",
        "p",
        "packed",
        "parameters",
        "positions",
        "retired",
        "right_probability",
        "scores",
        "window",
    )

    def __init__(
        self,
        classes: np.ndarray,
        n_features: int,
        kernels: Kernels | tuple[Any, ...],
        state: Any,
        feedback: str,
        parameters: dict[str, Any],
        inverse_temperature: float | None = None,
        retired: Iterable[int] = (),
        learned: Iterable[str] = (),
        feature_names: np.ndarray | None = None,
        exclusive: bool = True,
        window: tuple[int, list[int]] = (0, []),
        new_labels: Iterable[tuple[int, int]] = (),
        new_window: tuple[int, list[int]] = (0, []),
        *,
        lock: FairLock | None = None,
    ) -> None:
        if isinstance(kernels, tuple):  # this is a copy, see __reduce__
            # Compiled code does not check whether an array is read-only, as a mapped file is.
            kernels, state = kernels_named(*kernels), storage.writeable(state)
        self.feedback, self.inverse_temperature = feedback, inverse_temperature
        self.exclusive = exclusive
        self.all_features = np.arange(n_features, dtype=INDEX)
        self.all_features.flags.writeable = False  # all dense examples share it
        self.feature_names = feature_names
        self.lock = FairLock() if lock is None else lock
        self.learned = dict.fromkeys(map(key_of, learned))
        self.window, self.new_window = Window(*window), Window(*new_window)
        self.new_labels = dict(new_labels)
        self.conditions: Any = None
        self.right_probability: Any = None
        self.choose: Any = None
        self.decide: Any = None
        self.learn: Any = None
        self.replace_state(classes, kernels, state, parameters)
        self.retire(retired)

    @property
    def state(self) -> Any:
        """The state."""
        return self._state

    @state.setter
    def state(self, state: Any) -> None:
        self._state, self.packed = state, self.kernels.pack(state)

    def compile_decide(self) -> None:
        """Compile what `decide` needs, the largest part first: another process compiles `learn`."""
        decide = self.kernels.decide(self.state)
        inspect_entry()
        if self.inverse_temperature is not None:
            self.right_probability = right_probability_entry()
        self.choose = self.decide = decide

    def replace_state(
        self, classes: np.ndarray, kernels: Kernels, state: Any, parameters: dict[str, Any]
    ) -> None:
        """Replace the state by one for these classes."""
        self.classes, self.kernels = classes, kernels
        self.state, self.parameters = state, parameters
        self.labels = classes.tolist()
        self.positions = {label: k for k, label in enumerate(self.labels)}
        self.all_labels = np.arange(classes.size)
        self.scores, self.p = np.empty(classes.size), np.empty(classes.size)

    def retire(self, positions: Iterable[int]) -> None:
        """Stop offering the labels at these positions, and offer all others."""
        self.retired = frozenset(positions)
        self.default_offer = np.delete(self.all_labels, sorted(self.retired))
        self.default_among = self.labels_at(self.default_offer) if self.retired else None
        retire_classes = getattr(self.state, "retire_classes", None)
        if callable(retire_classes):
            retire_classes(sorted(self.retired))

    @property
    def play_offer(self) -> np.ndarray | None:
        """The labels on offer in `play`: None if all are, which compiles to faster code."""
        return self.default_offer if self.retired else None

    def offer(self, among: Any) -> np.ndarray:
        """Return the positions of these labels, in increasing order, as kernels take them."""
        return check_among(among, self.positions, self.classes)

    def current_offer(self, among: Any) -> np.ndarray:
        """Return the positions of the labels on offer, none of which may be retired."""
        if among is None:
            return self.default_offer
        offer = self.offer(among)
        for k in sorted(self.retired) if self.retired else ():
            if k in offer:
                raise ValueError(f"the label {self.labels[k]!r}, in among, is retired")
        return offer

    def refuse_retired(self, truth: np.ndarray) -> None:
        """Raise ValueError if one of the true labels is retired."""
        for k in self.retired.intersection(truth.tolist()) if self.retired else ():
            raise ValueError(
                f"the label {self.labels[k]!r} is retired: add_classes([...]) it first"
            )

    def position_of(self, label: Any) -> int:
        """Return the position of a label; raise ValueError if it is not one of the classes."""
        try:
            return self.positions[label]
        except (KeyError, TypeError):
            raise ValueError(f"unknown label {unknown(label, self.classes)}") from None

    def labels_at(self, offer: np.ndarray) -> tuple[Any, ...]:
        """Return the labels at the positions `offer`."""
        return tuple(self.labels[k] for k in offer.tolist())

    def mask_retired(self, scores: np.ndarray) -> None:
        """Set the scores of retired labels to minus infinity."""
        if self.retired:
            scores[..., sorted(self.retired)] = -np.inf

    def confidence(self, scores: np.ndarray, label: int) -> float | None:
        """Return the probability, by these scores, that a label is right; None without a model."""
        if self.right_probability is None:
            return None
        self.mask_retired(scores)
        return self.right_probability(scores, self.inverse_temperature, self.exclusive, label)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return the probabilities, by these scores of a model, that each label is right."""
        assert self.inverse_temperature is not None
        z = self.inverse_temperature * scores
        z[sorted(self.retired)] = -np.inf
        if not self.exclusive:
            return expit(z)
        p = np.exp(z - z.max())
        return p / p.sum()

    def count_feedback(self, label: int, n: int = 1) -> None:
        """Count feedback for a label; one with enough of it is no longer new."""
        if label in self.new_labels:
            self.new_labels[label] += n
            if self.new_labels[label] >= KNOWN_AFTER:
                del self.new_labels[label]

    def remember(self, key: int | str) -> None:
        """Remember the key of a decision that was learned from."""
        self.learned[key] = None
        if len(self.learned) > _TOO_MANY:  # deleting one at a time would take long
            self.learned = dict.fromkeys(self._last_keys())

    def last_ids(self) -> list[str]:
        """Return the ids of the last decisions that were learned from."""
        return [id_of(key) for key in self._last_keys()]

    def _last_keys(self) -> list[int | str]:
        return list(self.learned)[-MAX_REMEMBERED_IDS:]

    def __reduce__(self) -> tuple[Any, ...]:
        # Plain arguments of the class itself: that is what skops takes, too.
        with self.lock:
            return Run, (
                self.classes,
                self.all_features.size,
                self.kernels.reference,
                copy.deepcopy(self.state),
                self.feedback,
                self.parameters,
                self.inverse_temperature,
                sorted(self.retired),
                self.last_ids(),
                self.feature_names,
                self.exclusive,
                (self.window.decisions, list(self.window.explored)),
                list(self.new_labels.items()),
                (self.new_window.decisions, list(self.new_window.explored)),
            )
