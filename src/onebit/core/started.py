"""What a learner has once it has started."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from onebit.core import storage
from onebit.core.confidence import share_entry
from onebit.core.decision import MOST_IDS, id_of, key_of
from onebit.core.engine import Kernels, kernels_named
from onebit.core.example import INDEX
from onebit.core.offer import check_among
from onebit.core.turns import Turns
from onebit.core.validation import unknown

_TOO_MANY = MOST_IDS + MOST_IDS // 4


class Started:
    """What a learner has once it has started.

    A learner that starts anew gets another one, by a single assignment: a thread that still decides
    with the old one finds all of it as it was. What changes is touched only while holding `turns`;
    labels are only added, and keep their positions.
    """

    __slots__ = (
        "all_features",
        "all_labels",
        "among",
        "classes",
        "decide",
        "everything",
        "feedback",
        "kernels",
        "labels",
        "learn",
        "learned",
        "names",
        "p",
        "parameters",
        "positions",
        "retired",
        "scores",
        "share",
        "state",
        "temper",
        "turns",
    )

    def __init__(
        self,
        classes: np.ndarray,
        n_features: int,
        kernels: Kernels | tuple[Any, ...],
        state: Any,
        feedback: str,
        parameters: dict[str, Any],
        temper: float | None = None,
        retired: Iterable[int] = (),
        learned: Iterable[str] = (),
        names: np.ndarray | None = None,
        *,
        turns: Turns | None = None,
    ) -> None:
        if isinstance(kernels, tuple):  # this is a copy, see __reduce__
            # Compiled code writes where it is told, be it a file mapped for reading.
            kernels, state = kernels_named(*kernels), storage.writeable(state)
        self.feedback, self.temper = feedback, temper
        self.all_features = np.arange(n_features, dtype=INDEX)
        self.all_features.flags.writeable = False  # all dense examples share it
        self.names = names  # of the features
        self.turns = Turns() if turns is None else turns
        self.learned = dict.fromkeys(map(key_of, learned))
        self.share = None if temper is None else share_entry()
        # The compiled single rounds, each from when it is first needed.
        self.decide: Any = None
        self.learn: Any = None
        self.take(classes, kernels, state, parameters)
        self.retire(retired)

    def take(
        self, classes: np.ndarray, kernels: Kernels, state: Any, parameters: dict[str, Any]
    ) -> None:
        """Take a state, of these classes."""
        self.classes, self.kernels = classes, kernels
        self.state, self.parameters = state, parameters
        self.labels = classes.tolist()
        self.positions = {label: k for k, label in enumerate(self.labels)}
        self.all_labels = np.arange(classes.size)
        self.scores, self.p = np.empty(classes.size), np.empty(classes.size)

    def retire(self, positions: Iterable[int]) -> None:
        """Let all labels be on offer but those at these positions."""
        self.retired = frozenset(positions)
        # What single rounds and decisions are told of an offer, when none is asked for.
        self.everything = np.delete(self.all_labels, sorted(self.retired))
        self.among = self.labels_at(self.everything) if self.retired else None
        hide = getattr(self.state, "retire_classes", None)
        if callable(hide):
            hide(sorted(self.retired))

    @property
    def restriction(self) -> np.ndarray | None:
        """The labels on offer in `play`; None, which has faster code of its own, if all are."""
        return self.everything if self.retired else None

    def offer(self, among: Any) -> np.ndarray:
        """Return these labels as kernels are told them: by their positions."""
        return check_among(among, self.positions, self.classes)

    def current_offer(self, among: Any) -> np.ndarray:
        """Return the labels on offer now, as kernels are told them; None means all."""
        if among is None:
            return self.everything
        offer = self.offer(among)
        for k in sorted(self.retired) if self.retired else ():
            if k in offer:
                raise ValueError(f"the label {self.labels[k]!r}, in among, is retired")
        return offer

    def refuse_retired(self, truth: np.ndarray) -> None:
        """Raise ValueError if labels that someone says are right include a retired one."""
        for k in self.retired.intersection(truth.tolist()) if self.retired else ():
            raise ValueError(
                f"the label {self.labels[k]!r} is retired: add_classes([...]) it first"
            )

    def position_of(self, label: Any) -> int:
        """Return the position of a label; raise ValueError if it is none of the classes."""
        try:
            return self.positions[label]
        except (KeyError, TypeError):
            raise ValueError(f"unknown label {unknown(label, self.classes)}") from None

    def labels_at(self, offer: np.ndarray) -> tuple[Any, ...]:
        """Return the labels that `offer` stands for."""
        return tuple(self.labels[k] for k in offer.tolist())

    def leave_out(self, scores: np.ndarray) -> None:
        """Make the scores of retired labels such that none of them is right."""
        if self.retired:
            scores[..., sorted(self.retired)] = -np.inf

    def confidence(self, scores: np.ndarray, label: int) -> float | None:
        """Return how probable it is, by these scores, that a label is right."""
        if self.share is None:
            return None
        self.leave_out(scores)
        return self.share(scores, self.temper, label)

    def remember(self, key: int | str) -> None:
        """Remember that a decision was learned from."""
        self.learned[key] = None
        if len(self.learned) > _TOO_MANY:  # to forget one at a time would take long
            self.learned = dict.fromkeys(self._last_keys())

    def last_ids(self) -> list[str]:
        """Return the ids of the last decisions that were learned from."""
        return [id_of(key) for key in self._last_keys()]

    def _last_keys(self) -> list[int | str]:
        return list(self.learned)[-MOST_IDS:]

    def __reduce__(self) -> tuple[Any, ...]:
        # Plain arguments of the class itself: that is what skops takes, too.
        with self.turns:
            return Started, (
                self.classes,
                self.all_features.size,
                self.kernels.reference,
                copy.deepcopy(self.state),
                self.feedback,
                self.parameters,
                self.temper,
                sorted(self.retired),
                self.last_ids(),
                self.names,
            )
