"""Lists: several labels for one x, in order, each with its probability at its place.

A list is a sequence of decisions. The label of the first place is drawn as `decide` draws it; that
of the next as `decide` draws it among the labels that are left, and so on. So each probability is
exact for every learner, given the places before it, and their product is that of the list; each
place can be learned from, logged and judged as any decision with labels on offer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, Self, overload

import numpy as np

from onebit.core.decision import NONE_OF_THESE, Decision, check_id, key_of, new_id
from onebit.core.offer import label_list


class DecisionList(Sequence[Decision]):
    """Labels chosen for one `x`, in order: a decision for each place of a list.

    ``learner.decide(x, top=3)`` makes one. The decision of a place has the labels that were left in
    `among`, and its probability is conditional on the places before it.

    Parameters
    ----------
    places : sequence of Decision
        Decisions about the same x, each among the labels that the places before it left.
    id : str, optional
        Identifies the list; its places have this id with #1, #2 and so on appended.

    Examples
    --------
    >>> from onebit import OneBitClassifier
    >>> learner = OneBitClassifier(classes=["a", "b", "c"], random_state=0)
    >>> chosen = learner.decide([1.0, 0.0], top=2)
    >>> chosen
    DecisionList('a': 0.333333, 'c': 0.5)
    >>> learner.learn(chosen, taken=chosen.labels[1])     # the first was seen and passed over
    """

    __slots__ = ("id", "places")

    places: tuple[Decision, ...]
    id: str | None

    def __init__(self, places: Sequence[Decision], id: str | None = None) -> None:  # noqa: A002
        self.places, self.id = tuple(places), id
        if not self.places:
            raise ValueError("a list has at least one place")

    @property
    def labels(self) -> tuple[Any, ...]:
        """The labels, that of the first place first."""
        return tuple(place.label for place in self.places)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The probability of each label at its place, given the places before it."""
        return tuple(place.probability for place in self.places)

    @property
    def probability(self) -> float:
        """The probability of the whole list, in this order."""
        return math.prod(self.probabilities)

    @property
    def x(self) -> Any:
        """The example that was decided about."""
        return self.places[0].x

    @property
    def among(self) -> Any:
        """The labels on offer for the first place; None means all."""
        return self.places[0].among

    def to_dict(self) -> dict[str, Any]:
        """Return the list as a dict of JSON types, for `from_dict` in any process."""
        places = [place.to_dict() for place in self.places]
        return {
            "id": self.id,
            "x": places[0]["x"],
            "places": [
                {name: value for name, value in place.items() if name != "x"} for place in places
            ],
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Return the list of a dict that `to_dict` returned."""
        missing = [name for name in ("x", "places") if name not in given]
        if missing:
            raise ValueError(f"a list has {missing[0]!r}; got {given!r:.80}")
        places = [Decision.from_dict({**place, "x": given["x"]}) for place in given["places"]]
        return cls(places, given.get("id"))

    @overload
    def __getitem__(self, place: int) -> Decision: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Decision, ...]: ...
    def __getitem__(self, place: int | slice) -> Decision | tuple[Decision, ...]:
        return self.places[place]

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.places)

    def __repr__(self) -> str:
        chosen = ", ".join(f"{place.label!r}: {place.probability:.6g}" for place in self.places)
        return f"DecisionList({chosen})"


def id_of_place(name: str, place: int) -> str:
    """Return the id of a place, counted from 1, of a list with this id."""
    return f"{name}#{place}"


def decide_list(
    learner: Any, x: Any, among: Any, name: str | None, options: Any, top: int
) -> DecisionList:
    """Return the list that a learner chooses for x, of at most `top` places.

    `options` are the arguments worth, cost and explore; None if all have their defaults.
    """
    check_top(top, [name])
    among = None if among is None else label_list(among, "among")
    run, example = learner._validated(type(learner)._check_decide, x, among, name, options)
    with run.lock:
        return decided_list(learner, run, example, among, name, options, top)


def check_top(top: Any, names: Sequence[str | None]) -> None:
    """Raise ValueError unless `top` is a number of places, and ids are short enough for them."""
    if not isinstance(top, Integral) or isinstance(top, bool) or top < 1:
        raise ValueError(f"top is a number of places, at least 1; got {top!r}")
    for name in names:
        if name is not None:
            check_id(id_of_place(check_id(name), int(top)))


def decided_list(
    learner: Any, run: Any, example: Any, among: Any, name: str | None, options: Any, top: int
) -> DecisionList:
    """Return the list for an example, as `decide_list` does, while holding the lock."""
    name = new_id() if name is None else name
    left = list(run.labels_at(run.current_offer(among)))
    places: list[Decision] = []
    for place in range(1, min(int(top), len(left)) + 1):
        arguments = run, example, among if place == 1 else left, id_of_place(name, place)
        if options is None:
            decision = learner._decide(*arguments)
        else:
            decision = learner._decide_with(options, *arguments)
        left.remove(decision.label)
        places.append(decision)
    return DecisionList(places, name)


def learn_list(learner: Any, chosen: Any, correct: Any, truth: Any, taken: Any) -> None:
    """Learn from the feedback for a list."""
    if not isinstance(chosen, DecisionList):
        raise ValueError("taken=... is for a list, decide(x, top=...); for one label, correct=...")
    if sum(one is not None for one in (correct, truth, taken)) != 1:
        raise ValueError(
            "for a list, learn takes one of correct=..., reward=..., taken=... and truth=..."
        )
    places, n = list(chosen), len(chosen)
    if truth is None:
        bits = _bits_of(chosen, correct) if taken is None else bits_if_taken(chosen, taken)
        places = [place for place, bit in zip(places, bits, strict=True) if bit is not None]
        bits, truths = [bit for bit in bits if bit is not None], [None] * len(places)
    else:
        bits, truths = [None] * n, [truth] * n
    if not places:
        return
    lessons = learner._validated(type(learner)._lessons, places, bits, truths)
    run = lessons[0].run
    if truth is not None and (run.feedback == "full" or learner.uses_truth):
        # The label itself is told once, whatever the number of places.
        lessons[1:] = [lesson._replace(subject=None) for lesson in lessons[1:]]
    with run.lock:
        for place in places:
            learner._check_new(place, run)
        for place, lesson in zip(places, lessons, strict=True):
            learner._learn(place, lesson)
        if chosen.id is not None:
            run.remember(key_of(check_id(chosen.id)))


def bits_if_taken(chosen: DecisionList, taken: Any) -> list[bool | None]:
    """Return a bit for each place, by the label that was taken.

    People look from the first place on and take the first label that is right (the cascade model):
    labels before it were seen and passed over, those after it were not seen. With NONE_OF_THESE,
    all were seen and passed over.
    """
    if taken is NONE_OF_THESE:
        return [False] * len(chosen)
    labels = list(chosen.labels)
    if taken not in labels:
        raise ValueError(
            f"taken is one of the labels of the list, {labels!r:.80}, or NONE_OF_THESE; got "
            f"{taken!r:.80}"
        )
    place = labels.index(taken)
    return [False] * place + [True] + [None] * (len(labels) - place - 1)


def _bits_of(chosen: DecisionList, correct: Any) -> list[Any]:
    bits = list(correct) if np.iterable(correct) and not isinstance(correct, str) else []
    if len(bits) != len(chosen):
        raise ValueError(
            f"correct has a bit for each of {len(chosen)} places, or None where there is none; got "
            f"{correct!r:.80}"
        )
    return bits
