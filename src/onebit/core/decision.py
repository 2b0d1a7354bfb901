"""A label chosen for one x, and the probability with which it was chosen."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from enum import Enum
from typing import Any, Never, Self

import numpy as np

from onebit.core.example import INDEX, Example


class _Truth(Enum):
    NONE_OF_THESE = "none of these"

    def __repr__(self) -> str:
        return self.name


NONE_OF_THESE = _Truth.NONE_OF_THESE
"""The truth if no label is right."""

MAX_ID_LENGTH = 200
"""Largest number of characters of an id."""

MAX_REMEMBERED_IDS = 100_000
"""How many decisions a learner remembers having learned from."""


class Decision:
    """The label chosen for one `x`, with the probability of choosing it.

    `Learner.decide` makes decisions; one can also be made by hand, from a log.

    Parameters
    ----------
    x : 1-D array or one sparse row
        In a decision of `decide`, the learner's own copy of it as an `onebit.core.Example`.
    label
        The chosen label.
    probability : float
        The probability with which it was chosen, in (0, 1].
    among : tuple of labels, optional
        The labels on offer, from which it was chosen; None means all of them.
    id : str, optional
        Identifies the decision to a learner, also after either was saved and loaded; None for a
        decision made by hand without an id.
    confidence : float, optional
        The learner's estimate of the probability that the label is right; None if it has no such
        estimate. It is small for a label chosen to explore, however probable the choice was.

    Examples
    --------
    >>> from onebit import Decision, OneBitClassifier
    >>> learner = OneBitClassifier(classes=["billing", "support"], random_state=0)
    >>> learner.learn(Decision([1.0, 0.0], "billing", 0.5, id="ticket 1"), correct=True)
    >>> learner.has_learned("ticket 1")
    True
    """

    __slots__ = (
        "_id",
        "_is_encoded",
        "_learned_by",
        "_number",
        "among",
        "confidence",
        "label",
        "probability",
        "x",
    )

    x: Any
    label: Any
    probability: float
    among: Any
    confidence: float | None
    _id: str | None
    _is_encoded: bool  # whether the steps of a pipeline made x: dense ones are lists otherwise
    _number: int | None  # of a decision of `decide`; its id is made from the number when it is read
    _learned_by: tuple[Any, ...]

    def __init__(
        self,
        x: Any,
        label: Any,
        probability: float,
        among: Any = None,
        id: str | None = None,  # noqa: A002
        confidence: float | None = None,
    ) -> None:
        self.x, self.label, self.probability = x, label, probability
        self.among, self.id, self.confidence = among, id, confidence
        self._is_encoded, self._learned_by = False, ()

    @property
    def id(self) -> str | None:
        """Identifies the decision to a learner."""
        return self._id if self._number is None else id_of(self._number)

    @id.setter  # noqa: A003
    def id(self, given: str | None) -> None:
        self._id, self._number = given, None

    @property
    def _key(self) -> int | str | None:
        """The key by which a learner remembers the decision."""
        if self._number is not None:
            return self._number
        return key_of(self._id) if isinstance(self._id, str) else self._id

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as a dict of JSON types, for `from_dict` in any process.

        A dense example becomes a list of all its values; a sparse one, and any that the steps of a
        pipeline made, {"indices": [...], "values": [...], "n_features": d}.
        """
        x = self.x
        if isinstance(x, Example) and (x.values.size < x.n_features or self._is_encoded):
            x = {
                "indices": x.indices.tolist(),
                "values": x.values.tolist(),
                "n_features": x.n_features,
            }
        elif isinstance(x, Example):
            x = x.values.tolist()
        elif isinstance(x, np.ndarray):
            x = x.tolist()
        return {
            "id": self.id,
            "x": x,
            "label": _plain(self.label),
            "probability": _plain(self.probability),
            "among": None if self.among is None else [_plain(label) for label in self.among],
            "confidence": self.confidence,
        }

    @classmethod
    def from_dict(cls, decision: Mapping[str, Any]) -> Self:
        """Return the decision of a dict that `to_dict` returned."""
        missing = [name for name in ("x", "label", "probability") if name not in decision]
        if missing:
            raise ValueError(f"a decision has {missing[0]!r}; got {decision!r:.80}")
        x, among = decision["x"], decision.get("among")
        is_encoded = isinstance(x, Mapping) and x.keys() == {"indices", "values", "n_features"}
        made = cls(
            _example(**x) if is_encoded else x,
            decision["label"],
            decision["probability"],
            tuple(among) if isinstance(among, list) else among,
            decision.get("id"),
            decision.get("confidence"),
        )
        made._is_encoded = is_encoded
        return made

    def __repr__(self) -> str:
        among = "" if self.among is None else f", among={self.among!r}"
        return f"Decision(label={self.label!r}, probability={self.probability:.6g}{among})"

    def __getstate__(self) -> tuple[Any, ...]:
        # `_learned_by` compares learners by identity, which holds only within a process.
        said = self.x, self.label, self.probability, self.among, self.id, self.confidence
        return *said, self._is_encoded

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.x, self.label, self.probability, self.among, self.id, self.confidence = state[:6]
        self._is_encoded, self._learned_by = bool(state[6:] and state[6]), ()


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _example(indices: Any, values: Any, n_features: Any) -> Example:
    try:
        at, found = np.asarray(indices), np.asarray(values, dtype=np.float64)
        sound = (at.dtype.kind in "iu" or at.size == 0) and at.shape == found.shape
        sound = sound and at.ndim == 1 and type(n_features) is int and 0 < n_features <= 2**32
        sound = sound and bool((at.min(initial=0) >= 0) & (at.max(initial=0) < n_features))
    except (TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        raise ValueError(
            "the x of a decision has as many indices, from 0 to n_features - 1, as values; got "
            f"indices={indices!r:.80}, values={values!r:.80}, n_features={n_features!r:.80}"
        )
    return Example(at.astype(INDEX), found, n_features)


def check_decision(given: Any) -> Decision:
    """Return `given` if it is a decision; raise TypeError otherwise, such as for its id."""
    if isinstance(given, Decision):
        return given
    if isinstance(given, Mapping):
        raise TypeError(f"a decision is made of a dict by Decision.from_dict; got {given!r:.80}")
    raise TypeError(
        f"a decision is what decide returned, or Decision(x, label, probability) from a log; got "
        f"{given!r:.80}. Learners remember no decisions: keep it until its feedback comes, or keep "
        "decision.to_dict(), which is JSON, by decision.id, and learn from Decision.from_dict(kept)"
    )


def check_decisions(given: Any) -> list[Decision]:
    """Return a list of decisions; raise TypeError for anything else in it."""
    if isinstance(given, Decision):
        raise TypeError(f"learn_many takes a list of decisions; got one, {given!r}")
    return list(map(check_decision, given))


def refuse_positional(verb: str, values: tuple[Never, ...]) -> None:
    """Raise TypeError for positional feedback: it could be a bit or the right label."""
    if values:
        raise TypeError(
            f"{verb} takes feedback by its name: correct=... if it says right or wrong, or "
            f"truth=... if it is the right label; got {values[0]!r:.80}"
        )


# Ids


def check_id(given: Any) -> str:
    """Return the id of a decision, if it is valid."""
    if not isinstance(given, str) or not 0 < len(given) <= MAX_ID_LENGTH:
        raise ValueError(f"an id is a text of 1 to {MAX_ID_LENGTH} characters; got {given!r:.80}")
    return given


def new_id() -> str:
    """Return a new id, unique among all processes."""
    return id_of(next(_numbers))


def new_decision(
    x: Any,
    label: Any,
    probability: float,
    among: Any,
    name: str | None,
    confidence: float | None,
) -> Decision:
    """Return a decision; without a name it gets a new id, which is made when it is first read."""
    decision = _new_object(Decision)
    decision.x, decision.label, decision.probability = x, label, probability
    decision.among, decision._id, decision.confidence = among, name, confidence
    decision._number = next(_numbers) if name is None else None
    decision._is_encoded, decision._learned_by = False, ()
    return decision


def id_of(key: int | str) -> str:
    """Return the id with this key."""
    return key if isinstance(key, str) else f"{key >> 64:016x}-{key & _LAST:x}"


def key_of(name: str) -> int | str:
    """Return the key by which to remember an id: for a generated id, its number.

    Numbers, consecutive in a process, take less time and memory than texts.
    """
    try:
        number = int(name[:16], 16) << 64 | int(name[17:], 16)
    except ValueError:
        return name
    return number if id_of(number) == name else name


_LAST = 2**64 - 1
_new_object = object.__new__
_numbers = itertools.count()


def _begin_process() -> None:
    """Begin to number decisions, from a random start, so that no two processes share numbers."""
    global _numbers
    _numbers = itertools.count(int.from_bytes(os.urandom(8)) << 64)


_begin_process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_process)
