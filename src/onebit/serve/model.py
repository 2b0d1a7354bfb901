"""A model, which is fully determined by its log."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from threading import Lock
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Struct, structs

from onebit.core import Decision
from onebit.core.example import Example
from onebit.core.validation import short
from onebit.serve.apprentice import Apprentice, probability_of
from onebit.serve.estimates import compared, watched
from onebit.serve.exploration import Exploration, ExplorationLimit
from onebit.serve.packing import Packed, unpacked
from onebit.serve.replayable import ReplayableLearner, drawn_bit, feedback_for
from onebit.serve.rows import (
    DecisionBody,
    FeedbackBody,
    LabelsBody,
    LearnerSpec,
    ModelSettings,
    ModelSpec,
    Row,
    ShadowBody,
    body_of,
    descriptions_of,
    names_of,
)
from onebit.serve.statistics import Statistics

MOST_AWAITED = 20_000
"""Decisions that a model keeps in memory until there is feedback; older ones are in the log."""

MOST_SHADOWS = 8

BITS_AT_ONCE = 64
"""Bits per update of a shadow's estimate: one by one would take longer than learning."""

_DONE = {"add": "added", "remove": "removed", "promote": "promoted"}

PREVIOUS = "previous"
"""The shadow that decided before another one was promoted."""


class PendingDecision(NamedTuple):
    """A decision that has no feedback yet; without `decision`, it is made from its row."""

    body: DecisionBody
    decision: Decision | None = None


class Shadow(Struct):
    """Another learner that learns from the same log, and how it would have done."""

    spec: LearnerSpec
    since: int
    """The row that added it."""
    right: int
    """Decisions until then that were right by their feedback; wrong: those that were not."""
    wrong: int
    estimate: dict[str, Any] | None = None
    """Its accuracy, as `estimates.watched` keeps it."""
    pending: list[tuple[float, float]] = []
    """Weighted bits that the estimate does not include yet."""
    difference: dict[str, Any] | None = None
    """How it compares with the learner that decides, as `estimates.compared` keeps it."""


class Meta(Struct):
    """Everything in a model except its learners, as a snapshot stores it."""

    n: int
    spec: ModelSpec
    decider: LearnerSpec = msgspec.field(name="taught")
    """The learner that decides: the one of `spec`, or a shadow that was promoted."""
    statistics: Statistics
    shadows: dict[str, Shadow]
    frozen: bool
    expiry_seconds: float | None
    expired_counts_as: str
    apprentice: Apprentice | None = None
    descriptions: dict[str, str] = {}
    """What labels mean, by the label as text: records, as JSON."""
    exploration: Exploration = msgspec.field(default_factory=Exploration)
    exploration_limit: ExplorationLimit | None = None
    new_limit: ExplorationLimit | None = None
    """Limits labels that are new; its `explored` decisions are those that chose one."""


class Shape(NamedTuple):
    """The labels of a model, those of them that are retired, and the number of features."""

    labels: list[Any]
    retired: list[Any]
    n_features: int


class Model:
    """A model after the first n rows of its log.

    Only `apply` changes its state, so it depends on these rows alone. `decide` changes nothing.
    Its learners may be packed while nobody uses them; they are unpacked at their next use.
    """

    def __init__(self, meta: Meta, learners: dict[str, ReplayableLearner]) -> None:
        self.meta = meta
        self._learners: dict[str, ReplayableLearner] | None = learners
        self._packed: Packed | None = None
        self._shape = Shape([], [], 0)
        self._unpacking = Lock()
        self._offered: int | None = None
        self.awaited: dict[str, PendingDecision] = {}
        self.exploring: set[str] = set()
        """Decisions that explore, count for the limit, and are being written."""
        self.choosing_new: set[str] = set()
        """The same for decisions that choose a new label."""

    @classmethod
    def begin(cls, row: Row) -> Model:
        """Return the model that the first row of a log defines."""
        if (row.n, row.kind) != (1, "model"):
            raise ValueError(f"a log begins with row 1, of a model; got row {row.n}, of {row.kind}")
        spec: ModelSpec = body_of(row)
        if spec.seed is None:
            raise ValueError("the first row of a log has the seed of the model")
        labels, described = names_of(spec.labels), descriptions_of(spec.labels)
        if len(set(labels)) < len(labels):
            raise ValueError("labels has a label twice")
        learner = ReplayableLearner.begin(spec, spec, labels)
        if described:
            learner.describe(described)
        meta = Meta(
            1,
            spec,
            LearnerSpec(learner=spec.learner, parameters=spec.parameters),
            Statistics(),
            {},
            False,
            spec.expiry_seconds,
            spec.expired_counts_as,
            descriptions=_as_texts(described),
        )
        if spec.max_exploration is not UNSET:
            meta.exploration_limit = ExplorationLimit(spec.max_exploration)
        if spec.max_new_share is not UNSET:
            meta.new_limit = ExplorationLimit(spec.max_new_share)
        if spec.apprentice is not UNSET:
            meta.apprentice = Apprentice(1)
            meta.apprentice.change(spec.apprentice, 1)
        return cls(meta, {"": learner})

    @classmethod
    def restore(cls, meta: bytes, learners: dict[str, bytes]) -> Model:
        """Return the model that `snapshot` stored; raise ValueError if it is not sound."""
        found = msgspec.json.decode(meta, type=Meta)
        if set(learners) != {"", *found.shadows} or found.spec.seed is None:
            raise ValueError("a snapshot has the learners that it names")
        seed = found.spec.seed
        return cls(found, {k: ReplayableLearner.from_bytes(v, seed) for k, v in learners.items()})

    def snapshot(self) -> tuple[bytes, dict[str, bytes]]:
        """Return the model as bytes: the same for the same rows."""
        learners = {name: learner.to_bytes() for name, learner in sorted(self.learners.items())}
        return msgspec.json.encode(self.meta, order="sorted"), learners

    def copy(self) -> Model:
        """Return an independent copy."""
        learners = {name: learner.copy() for name, learner in self.learners.items()}
        return Model(self.copy_of_meta(), learners)

    def copy_of_meta(self) -> Meta:
        """Return a copy of everything except the learners."""
        return msgspec.msgpack.decode(msgspec.msgpack.encode(self.meta), type=Meta)

    # Learners that are packed

    @property
    def learners(self) -> dict[str, ReplayableLearner]:
        """The learner that decides, by an empty name, and the shadows."""
        if self._learners is None:
            return self.unpack()
        return self._learners

    @property
    def is_packed(self) -> bool:
        """Whether the learners are packed."""
        return self._learners is None

    def pack(self, found: Packed) -> None:
        """Keep the learners only as `packed` returned them, and the decisions only in the log."""
        self._shape, self._packed, self._learners = self.shape, found, None
        self.awaited.clear()

    def unpack(self) -> dict[str, ReplayableLearner]:
        """Unpack the learners; several threads may do so."""
        with self._unpacking:
            if self._learners is None:
                assert self._packed is not None
                self._learners = unpacked(self._packed)
                self._packed = None
            return self._learners

    @property
    def shape(self) -> Shape:
        """The labels and the number of features, also if the learners are packed."""
        if self._learners is None:
            return self._shape
        learner = self.learner
        return Shape(learner.labels, learner.retired, learner.n_features)

    @property
    def size(self) -> int:
        """Bytes of the arrays of its learners."""
        if self._learners is None:
            return 0 if self._packed is None else self._packed.size
        return sum(learner.size for learner in self._learners.values())

    @property
    def n(self) -> int:
        """The number of rows that it has applied."""
        return self.meta.n

    @property
    def learner(self) -> ReplayableLearner:
        """The learner that decides."""
        return self.learners[""]

    @property
    def shadows(self) -> Iterator[tuple[str, ReplayableLearner]]:
        """The learners that do not decide."""
        return (item for item in self.learners.items() if item[0])

    # Decisions

    def decide(
        self,
        record: Any,
        among: list[Any] | None,
        decision_id: str | None,
        most_features: int,
        chosen: Any = None,
        chosen_probability: float | None = None,
        *,
        explore: bool = True,
        cap: float | None = None,
        new_cap: float | None = None,
    ) -> tuple[Decision, DecisionBody]:
        """Choose a label for a record; return the decision and the content of its row.

        Parameters
        ----------
        record : object
        among : list or None
            The labels on offer.
        decision_id : str or None
        most_features : int
            Maximum number of features of an example.
        chosen : label, optional
            The choice of the product.
        chosen_probability : float, optional
            The probability with which it chose.
        explore : bool, default=True
            Whether another label than the best guess may be chosen.
        cap : float, optional
            The largest probability that such labels may have, see `exploration_cap`.
        new_cap : float, optional
            The largest probability that new labels may have, see `new_cap`.
        """
        learner = self.learner
        x = learner.example(record)
        self.check_size(x, most_features)
        caps: dict[str, Any] = {"explore": explore, "cap": cap, "new_cap": new_cap}
        decision = learner.decide(x, among, decision_id, **caps)
        body = DecisionBody(
            record,
            decision.label,
            float(decision.probability),
            self.n,
            decision.confidence,
            None if decision.among is None else list(decision.among),
            learner.explored(decision, new_cap),
            explore=explore,
            exploration_cap=cap,
            new_cap=new_cap,
            is_new=new_cap is not None and learner.is_new(decision.label),
        )
        if chosen is None:
            return decision, body
        return self._between(decision, body, decision_id, chosen, chosen_probability)

    @staticmethod
    def check_size(x: Example, most_features: int) -> None:
        """Raise ValueError for an example of too many features."""
        if x.values.size > most_features:
            raise ValueError(
                f"an example has at most {most_features:,} features; this one has {x.values.size:,}"
            )

    def _between(
        self,
        decision: Decision,
        body: DecisionBody,
        decision_id: str | None,
        chosen: Any,
        chosen_probability: float | None,
    ) -> tuple[Decision, DecisionBody]:
        """Return the decision of the model or the choice of the product, with its probability."""
        apprentice, learner, among = self.meta.apprentice, self.learner, body.among
        if apprentice is None:
            raise ValueError("chosen is for a model that is an apprentice; this one is none")
        offer = [label for label in learner.labels if label not in learner.retired]
        if chosen not in (offer if among is None else among):
            raise ValueError(f"the chosen label {short(chosen)} is not on offer")
        share, label = apprentice.product_share, decision.label
        if not body.explore:
            share = float(apprentice.decides == "product")
        given: dict[str, Any] = {"chosen": chosen, "chosen_probability": chosen_probability}
        if learner.product_decides(share, decision_id) and label != chosen:
            label = chosen
            given |= {"label": label, "confidence": None, "explored": False}
            given["is_new"] = body.new_cap is not None and learner.is_new(label)
        caps = {"cap": body.exploration_cap, "new_cap": body.new_cap}
        policy = learner.policy(decision.x, among, explore=body.explore, **caps)
        model = float(policy[learner.position_of(label)])
        p = probability_of(label == chosen, model, chosen_probability, share)
        given |= {"probability": p, "product_share": share, "model_probability": model}
        body = structs.replace(body, **given)
        return Decision(decision.x, label, p, decision.among), body

    def exploration_cap(self) -> float | None:
        """Return how probable the next decision may be to explore; None without a limit."""
        limit = self.meta.exploration_limit
        return None if limit is None else limit.cap(len(self.exploring))

    def new_cap(self) -> float | None:
        """Return how probable new labels may be in the next decision; None without a limit."""
        limit = self.meta.new_limit
        return None if limit is None else limit.cap(len(self.choosing_new))

    def checked_decision(self, body: DecisionBody) -> Decision:
        """Return the decision of a row; raise ValueError if nothing could be learned from it."""
        decision = self._decision_of(body)
        self.learner.check(decision)
        return decision

    # Rows

    def apply(self, row: Row, body: Any = None, pending: PendingDecision | None = None) -> None:
        """Apply the next row.

        Parameters
        ----------
        row : Row
            Number n + 1 of the log.
        body : Struct, optional
            Its content, if already decoded.
        pending : PendingDecision, optional
            The decision of this row, or the one that it is feedback for. Needed for feedback if the
            decision is not in `awaited`.
        """
        if row.n != self.n + 1:
            raise ValueError(f"row {row.n} does not follow row {self.n}")
        body = body_of(row) if body is None else body
        if row.kind == "decision":
            self._add_decision(row, body, pending)
        elif row.kind == "feedback":
            known = self.awaited.pop(str(row.id), None) or pending
            if known is None:
                raise ValueError(f"row {row.n} is feedback for {row.id!r}, which nobody decided")
            self._add_feedback(row, body, known)
        elif row.kind == "activation":
            pass  # it matters only once the decision expires
        elif row.kind == "settings":
            self._change_settings(body, row)
        elif row.kind in ("revision", "erasure", "erased"):
            pass  # earlier rows were applied as they are since then
        elif row.kind in ("labels", "shadow"):
            # A change that others have made impossible since it was requested has no effect.
            with contextlib.suppress(ValueError, TypeError):
                self._change(body, row.n)
                self._mark(body, row.at)
        else:
            raise ValueError(f"row {row.n} is of a {row.kind}, which only the first row is")
        self.meta.n = row.n

    def try_change(self, body: LabelsBody | ShadowBody) -> None:
        """Change a copy: raise ValueError if it is not possible, and compile what it needs."""
        if isinstance(body, LabelsBody):
            _change_labels(self.learners, body)
            return
        self._change(body, self.n + 1)
        if body.action == "add":
            self.learners[body.name].warm_up()

    def adopt_labels_of(self, changed: Model, labels: LabelsBody, at: float) -> None:
        """Apply the next row at once, by adopting the learners of a copy that was changed by it."""
        self._learners, self._offered = changed.learners, None
        self._mark(labels, at)
        self.meta.n += 1

    def _change(self, body: LabelsBody | ShadowBody, n: int) -> None:
        """Change labels or shadows; raise ValueError, and change nothing, if it is not possible."""
        if isinstance(body, ShadowBody):
            self._change_shadow(body, n)
            return
        learners = {name: learner.copy() for name, learner in self.learners.items()}
        _change_labels(learners, body)
        self._learners, self._offered = learners, None

    def _mark(self, body: LabelsBody | ShadowBody, at: float) -> None:
        """Note a change of labels or shadows, for the page, and what labels mean now."""
        statistics = self.meta.statistics
        if isinstance(body, ShadowBody):
            statistics.add_mark(at, f"shadow {_DONE[body.action]}", [body.name])
            return
        self.meta.descriptions |= _as_texts(descriptions_of([*body.add, *body.describe]))
        for kind, labels in (
            ("labels added", body.add),
            ("labels retired", body.retire),
            ("labels described", body.describe),
        ):
            if labels:
                statistics.add_mark(at, kind, names_of(labels))

    @property
    def offered(self) -> int:
        """The number of labels that are not retired."""
        if self._offered is None:
            shape = self.shape
            self._offered = len(shape.labels) - len(shape.retired)
        return self._offered

    def _add_decision(self, row: Row, body: DecisionBody, pending: PendingDecision | None) -> None:
        self.meta.statistics.add_decision(row.at, body.label, body.explored)
        name = str(row.id)
        if self.meta.exploration_limit is not None:
            self.meta.exploration_limit.add(body.explored)
            self.exploring.discard(name)
        if self.meta.new_limit is not None:
            self.meta.new_limit.add(body.is_new)
            self.choosing_new.discard(name)
        self.awaited[name] = PendingDecision(body) if pending is None else pending
        if len(self.awaited) > MOST_AWAITED:
            del self.awaited[next(iter(self.awaited))]

    def _add_feedback(self, row: Row, body: FeedbackBody, pending: PendingDecision) -> None:
        statistics, label = self.meta.statistics, pending.body.label
        statistics.answered += 1
        statistics.expired += body.expired is not UNSET
        correct, value = is_right(body, label, str(row.id)), value_of(body, label)
        if correct is not None and value is not None:
            given, among = pending.body, pending.body.among
            truth = None if body.truth is UNSET else "" if body.truth is None else str(body.truth)
            offered = self.offered if among is None else len(among)
            statistics.add_bit(row.at, label, correct, given.probability, truth, offered)
            self.meta.exploration.add_bit(given, correct, value)
            apprentice = self.meta.apprentice
            if apprentice is not None and apprentice.add_bit(given, value, row.n):
                self._mark_decider(row.at)
        feedback = feedback_for(body, self.learner.labels, str(row.id))
        if self.meta.frozen or not feedback:
            return
        decision = pending.decision
        if decision is None:
            decision = self._decision_of(pending.body)
        if value is not None:
            self._estimate_shadows(decision, value)
        for learner in self.learners.values():
            learner.learn(decision, feedback, row.n)

    def _mark_decider(self, at: float) -> None:
        """Note who decides from now on, for the page."""
        assert self.meta.apprentice is not None
        self.meta.statistics.add_mark(at, f"the {self.meta.apprentice.decides} decides")

    def _decision_of(self, body: DecisionBody) -> Decision:
        offered = None if body.among is None else tuple(body.among)
        example = self.learner.example(body.record)
        return Decision(example, body.label, body.probability, offered)

    def _estimate_shadows(self, decision: Decision, value: float) -> None:
        """Give a bit or a reward its importance weight for each shadow."""
        for name, shadow in self.meta.shadows.items():
            p = self.learners[name].probability_of(decision)
            shadow.pending.append((value, p / decision.probability))
            if len(shadow.pending) >= BITS_AT_ONCE:
                shadow.estimate = watched(shadow.estimate, shadow.pending)
                shadow.difference = compared(shadow.difference, shadow.pending)
                shadow.pending = []

    def _change_settings(self, body: ModelSettings, row: Row) -> None:
        meta, at = self.meta, row.at
        if body.apprentice is None:
            meta.apprentice = None
        elif body.apprentice is not UNSET:
            if meta.apprentice is None:
                meta.apprentice = Apprentice(row.n)
            if meta.apprentice.change(body.apprentice, row.n):
                self._mark_decider(at)
        if body.frozen is not UNSET:
            if meta.frozen != body.frozen:
                meta.statistics.add_mark(at, "frozen" if body.frozen else "unfrozen")
            meta.frozen = body.frozen
        if body.max_exploration is not UNSET:
            meta.exploration_limit = _limit(body.max_exploration, meta.exploration_limit)
        if body.max_new_share is not UNSET:
            meta.new_limit = _limit(body.max_new_share, meta.new_limit)
        if body.expiry_seconds is not UNSET:
            meta.expiry_seconds = body.expiry_seconds
        if body.expired_counts_as is not UNSET:
            meta.expired_counts_as = body.expired_counts_as

    def _change_shadow(self, body: ShadowBody, n: int) -> None:
        meta = self.meta
        if body.action == "add":
            if body.name in meta.shadows:
                raise ValueError(f"there is a shadow {body.name!r} already")
            if len(meta.shadows) >= MOST_SHADOWS:
                raise ValueError(f"a model has at most {MOST_SHADOWS} shadows")
            spec = LearnerSpec() if body.spec is None else body.spec
            learner = ReplayableLearner.begin(meta.spec, spec, self.learner.labels)
            if meta.descriptions and learner.takes_descriptions:
                learner.describe(self._descriptions())
            learner.change_labels([], self.learner.retired)
            self._add_shadow(body.name, spec, learner, n)
            return
        if body.name not in meta.shadows:
            raise ValueError(f"there is no shadow {body.name!r}")
        shadow, learner = meta.shadows.pop(body.name), self.learners.pop(body.name)
        if body.action == "promote":
            self._add_shadow(PREVIOUS, meta.decider, self.learner, n)
            meta.decider, self.learners[""] = shadow.spec, learner

    def _descriptions(self) -> dict[Any, Any]:
        """Return what labels mean, by label, in the order of the labels."""
        texts = self.meta.descriptions
        described = [label for label in self.learner.labels if str(label) in texts]
        return {label: msgspec.json.decode(texts[str(label)]) for label in described}

    def _add_shadow(self, name: str, spec: LearnerSpec, learner: ReplayableLearner, n: int) -> None:
        statistics = self.meta.statistics
        self.meta.shadows[name] = Shadow(spec, n, statistics.right, statistics.wrong)
        self.learners[name] = learner


def _change_labels(learners: dict[str, ReplayableLearner], body: LabelsBody) -> None:
    """Change the labels of learners; shadows that take no descriptions learn without them."""
    add, described = names_of(body.add), descriptions_of([*body.add, *body.describe])
    for name, learner in learners.items():
        learner.change_labels(add, body.retire)
        if described and (not name or learner.takes_descriptions):
            learner.describe(described)


def _limit(share: float | None, before: ExplorationLimit | None) -> ExplorationLimit | None:
    """Return another limit; what was counted for the one before counts for it, too."""
    if share is None or before is None:
        return None if share is None else ExplorationLimit(share)
    return structs.replace(before, share=share)


def _as_texts(descriptions: dict[Any, Any]) -> dict[str, str]:
    return {str(label): msgspec.json.encode(one).decode() for label, one in descriptions.items()}


def value_of(feedback: FeedbackBody, label: Any) -> float | None:
    """Return how far a label is right by this feedback, in [0, 1]; None if that is unknown."""
    if feedback.withdrawn:
        return None
    if feedback.expired is not UNSET:
        return 0.0 if feedback.expired == "wrong" else None
    if feedback.truth is not UNSET:
        return float(feedback.truth == label)
    if feedback.reward is not UNSET:
        return feedback.reward
    return float(bool(feedback.correct))


def is_right(feedback: FeedbackBody, label: Any, decision_id: str) -> bool | None:
    """Return whether a label counts as right by this feedback; None if that is unknown.

    By a reward it does with this probability.
    """
    value = value_of(feedback, label)
    if value is None or value in (0.0, 1.0):
        return None if value is None else value == 1.0
    return drawn_bit(decision_id, value)


def agree(one: FeedbackBody, other: FeedbackBody, label: Any) -> bool:
    """Return whether two feedbacks for a label agree, as far as both say anything."""
    if one.truth is not UNSET and other.truth is not UNSET:
        return one.truth == other.truth
    return value_of(one, label) == value_of(other, label)
