"""A learner as the service uses it: its random draws depend on the log alone."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET
from sklearn.base import clone

from onebit import learners
from onebit.core import NONE_OF_THESE, Decision, storage
from onebit.core.choosing import not_new
from onebit.core.decision import new_id
from onebit.core.example import INDEX, Example
from onebit.core.explanation import Explanation, naming_by
from onebit.core.labels import as_described
from onebit.core.registry import chosen_class
from onebit.core.terms import Conditions, draw_entry, limit_exploration
from onebit.core.validation import check_example, short
from onebit.features import Records
from onebit.serve.rows import FeedbackBody, LearnerSpec, ModelSpec

if TYPE_CHECKING:
    from onebit import Learner

MOST_WEIGHTS = 2**24
"""Maximum weights of a learner, one per feature and label; `OneBitClassifier` has 16 bytes each."""


def learners_of_models() -> list[type[Learner]]:
    """Return the learners that a model can have."""
    classes = (getattr(learners, name) for name in learners.__all__)
    return [cls for cls in classes if cls.feedback == "bandit" and cls.cost.is_linear]


class ReplayableLearner:
    """A learner that decides and learns as the log says, and the step that makes examples.

    Its draws for a decision depend on the seed and the decision's id, and its draws when it learns,
    on the seed and the row number. So the state after a row depends only on the rows up to there.
    """

    def __init__(self, learner: Learner, records: Records | None, seed: int) -> None:
        self.learner, self.records = learner, records
        self._seed = seed.to_bytes(8)

    @classmethod
    def begin(cls, model: ModelSpec, spec: LearnerSpec, labels: list[Any]) -> ReplayableLearner:
        """Return a learner before its first round."""
        records, n_features = None, model.n_features
        if model.input == "records":
            records = Records(
                _default_width(len(model.labels)) if n_features is None else n_features
            )
            n_features = records._width()
        elif n_features is None:
            raise ValueError("a model of numbers needs n_features, how many there are")
        learner = _learner(spec, labels, n_features)
        learner.decide(_nothing(n_features))  # which starts it
        return cls(learner, records, model.seed or 0)

    def warm_up(self) -> None:
        """Compile all that is needed, by using a copy."""
        learner, retired = self.copy(), set(self.retired)
        on_offer = [label for label in self.labels if label not in retired]
        for among in (None, on_offer[:-1] or on_offer):
            decision = learner.decide(_nothing(self.learner.n_features_in_), among)
            learner.learn(decision, {"correct": True}, 1)
            learner.probability_of(decision)

    def prepare_rewards(self) -> None:
        """Compile what rewards need, if the learner takes them."""
        if self.learner.takes_rewards:
            self.learner._run.kernels.grade(self.learner._run.state)

    @property
    def is_prepared_for_rewards(self) -> bool:
        """Whether rewards need no compiling."""
        return not self.learner.takes_rewards or self.learner._run.kernels.takes_grades_now

    @classmethod
    def from_bytes(cls, content: bytes, seed: int) -> ReplayableLearner:
        """Return the learner that `to_bytes` stored."""
        steps, learner = storage.parts_from_bytes(content)
        (records,) = steps or [None]
        return cls(learner, records, seed)

    def to_bytes(self) -> bytes:
        """Return the learner as `onebit.load` reads it."""
        self._draw_from(b"")  # decisions in between leave no trace
        return storage.to_bytes(self.learner, [] if self.records is None else [self.records])

    def copy(self) -> ReplayableLearner:
        """Return a copy that continues as this one would."""
        new = copy.copy(self)
        new.learner = copy.deepcopy(self.learner)
        return new

    @property
    def size(self) -> int:
        """Bytes of its arrays in memory."""
        return _bytes_of(self.learner._run.state)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.learner.n_features_in_

    @property
    def labels(self) -> list[Any]:
        """All labels, including retired ones."""
        return self.learner._run.labels

    @property
    def retired(self) -> list[Any]:
        """The labels that are retired."""
        return self.learner.retired_classes_.tolist()

    def example(self, record: Any) -> Example:
        """Return the example that a record becomes."""
        if self.records is not None:
            return self.records.encode(record)
        n = self.learner.n_features_in_
        if not isinstance(record, list):
            raise ValueError(f"this model decides about lists of {n} numbers; got {short(record)}")
        for value in record:
            if type(value) is not float and type(value) is not int:
                raise ValueError(f"a list of numbers is needed; it has {short(value)}")
        return check_example(record, self.learner._run.all_features)

    def decide(
        self,
        x: Example,
        among: list[Any] | None = None,
        decision_id: str | None = None,
        *,
        explore: bool = True,
        cap: float | None = None,
        new_cap: float | None = None,
    ) -> Decision:
        """Choose a label, which depends only on the id, the cap and on what was learned.

        Parameters
        ----------
        x : Example
        among : list, optional
            The labels on offer.
        decision_id : str, optional
        explore : bool, default=True
            Whether another label than the best guess may be chosen.
        cap : float, optional
            The largest probability that such labels may have.
        new_cap : float, optional
            The largest probability that labels may have that were added and are new.
        """
        name = new_id() if decision_id is None else decision_id
        self._draw_from(b"decision" + name.encode(errors="surrogatepass"))
        if new_cap is not None and not self.learner._run.new_labels:
            new_cap = None
        if new_cap is not None or (explore and cap is not None):
            return self._decide_within(x, among, explore, cap, new_cap)
        decision = self.learner.decide(x, among, id=name, explore=explore)
        decision.id = None  # the log says what was learned: the learner need not remember ids
        return decision

    def _decide_within(
        self,
        x: Example,
        among: list[Any] | None,
        explore: bool,
        cap: float | None,
        new_cap: float | None,
    ) -> Decision:
        run = self.learner._run
        p = self.policy(x, among, explore=explore, cap=cap, new_cap=new_cap)
        label = int(draw_entry()(run.state.rng, p))
        offered = run.default_among if among is None else tuple(among)
        confidence = run.confidence(run.scores, label)
        return Decision(x, run.labels[label], float(p[label]), offered, None, confidence)

    def policy(
        self,
        x: Example,
        among: list[Any] | None,
        *,
        explore: bool = True,
        cap: float | None = None,
        new_cap: float | None = None,
    ) -> np.ndarray:
        """Return the probability of each label, as `decide` chooses them."""
        if explore and cap is None and new_cap is None:
            return self.learner.policy(x, among)[0]
        run = self.learner._run
        p = np.empty(run.classes.size)
        terms = Conditions(None, explore, None)
        offer = run.current_offer(among)
        greedy = self.learner._fill_policy(run, x, offer, terms, run.scores, p, new_cap)
        if explore and cap is not None:
            limit_exploration(p, greedy, cap)
        return p

    def product_decides(self, share: float, decision_id: str | None) -> bool:
        """Return whether the choice of the product is taken; it depends only on the id."""
        name = ("" if decision_id is None else decision_id).encode(errors="surrogatepass")
        digest = blake2b(self._seed + b"product" + name, digest_size=8).digest()
        return int.from_bytes(digest) < share * 2.0**64

    def position_of(self, label: Any) -> int:
        """Return the place of a label in policies."""
        return self.learner._run.positions[label]

    def explain(
        self, record: Any, label: Any = None, against: Any = None, among: list[Any] | None = None
    ) -> Explanation:
        """Return what spoke for a label and against another one, in the words of the record."""
        example = self.example(record)
        naming = None if self.records is None else naming_by(self.records.names(record))
        return self.learner._explain(example, label, against, among, naming)

    def is_new(self, label: Any) -> bool:
        """Return whether a label was added, and there was little feedback for it since then."""
        return self.position_of(label) in self.learner._run.new_labels

    def explored(self, decision: Decision, new_cap: float | None = None) -> bool:
        """Return whether the decision that was just made differs from the greedy label.

        Where new labels are limited, others are compared with others.
        """
        run = self.learner._run
        if new_cap is not None and run.new_labels and not self.is_new(decision.label):
            scores, label = run.scores.tolist(), run.positions[decision.label]
            offer = not_new(run, run.current_offer(decision.among)).tolist()
            return max(offer, key=scores.__getitem__) != label
        # Not NumPy's argmax, which releases the GIL and waits for it again.
        scores, label = run.scores.tolist(), run.positions[decision.label]
        if decision.among is None:
            return scores.index(max(scores)) != label
        return any(scores[run.positions[other]] > scores[label] for other in decision.among)

    def check(self, decision: Decision) -> None:
        """Raise ValueError for a decision that cannot be learned from."""
        self.learner._lesson(decision, True, None)

    def learn(self, decision: Decision, feedback: dict[str, Any], n: int) -> None:
        """Learn the feedback of row n for a decision, as `feedback_for` returns it."""
        self._draw_from(b"row" + n.to_bytes(8))
        if "reward" in feedback and not self.learner.takes_rewards:
            feedback = {"correct": feedback["drawn"]}
        elif "reward" in feedback:
            feedback = {"reward": feedback["reward"]}
        self.learner.learn(decision, **feedback)

    def probability_of(self, decision: Decision) -> float:
        """Return the probability that this learner gives to the label of another one's decision.

        Labels that were retired since then are no longer on offer, and have probability zero.
        """
        among, retired = decision.among, set(self.retired)
        if decision.label in retired:
            return 0.0
        if among is not None and not retired.isdisjoint(among):
            among = tuple(label for label in among if label not in retired)
        p = self.learner.policy(decision.x, among)
        return float(p[0, self.learner._run.positions[decision.label]])

    def change_labels(self, add: list[Any], retire: list[Any]) -> None:
        """Add and retire labels."""
        if add:
            # The form of a learner stays when labels come, even if fewer labels decided it.
            form = clone(self.learner).set_params(**self.learner._run.parameters)
            n_features, n_labels = self.learner.n_features_in_, len(self.labels)
            _check_size(form._at_size(n_features, n_labels), n_features, n_labels + len(add))
            self.learner.add_classes(add)
        if retire:
            self.learner.retire_classes(retire)

    @property
    def takes_descriptions(self) -> bool:
        """Whether its labels can be described."""
        return self.learner.takes_descriptions

    def describe(self, descriptions: Mapping[Any, Any]) -> None:
        """Describe labels: a record for each."""
        self.learner.describe({
            name: self.example(as_described(one)) for name, one in descriptions.items()
        })  # fmt: skip

    def _draw_from(self, key: bytes) -> None:
        digest = blake2b(self._seed + key, digest_size=32).digest()
        self.learner._run.state.rng.data.cast("B")[:] = digest


def drawn_bit(decision_id: str, reward: float) -> bool:
    """Return a bit in place of a reward in [0, 1]: true with this probability.

    So the expected bit is the reward, and a policy that is right most often has the largest mean
    reward. The draw depends on the id alone: a reward that is sent again gives the same bit, and a
    higher one never a worse bit.
    """
    name = decision_id.encode(errors="surrogatepass")
    digest = blake2b(b"reward" + name, digest_size=8).digest()
    return int.from_bytes(digest) < reward * 2.0**64


def feedback_for(body: FeedbackBody, labels: list[Any], decision_id: str) -> dict[str, Any]:
    """Return the feedback that `ReplayableLearner.learn` takes; none if there is nothing to learn.

    A reward comes with a bit drawn from it, for learners that need one.

    A revision may name a label that was added after the feedback that it revises. When that was
    given, none of the labels was right.
    """
    if body.withdrawn:
        return {}
    if body.expired is not UNSET:
        return {"correct": False} if body.expired == "wrong" else {}
    if body.truth is not UNSET:
        return {"truth": body.truth if body.truth in labels else NONE_OF_THESE}
    if body.reward is not UNSET:
        return {"reward": body.reward, "drawn": drawn_bit(decision_id, body.reward)}
    return {"correct": body.correct}


def _learner(spec: LearnerSpec, labels: list[Any], n_features: int) -> Learner:
    cls = chosen_class(spec.learner, learners_of_models())
    known = set(cls._get_param_names()) - {"classes", "random_state"}
    for name in spec.parameters:
        if name not in known:
            raise ValueError(
                f"{cls.__name__} has no parameter {short(name)}: it has {', '.join(sorted(known))}"
            )
    learner = cls(classes=labels, random_state=0, **spec.parameters)
    if learner.feedback != "bandit":
        raise ValueError(
            f"{cls.__name__} with these parameters needs the label itself, not one bit"
        )
    learner._validate_params()
    _check_size(learner._at_size(n_features, len(labels)), n_features, len(labels))
    return learner


def _bytes_of(state: Any) -> int:
    if isinstance(state, tuple):
        return sum(map(_bytes_of, state))
    return state.nbytes if isinstance(state, np.ndarray) else 0


def _default_width(n_labels: int) -> int:
    """Return the columns that records are hashed to: fewer where there are many labels."""
    width = Records().n_features
    while width * n_labels > MOST_WEIGHTS and width > 2:
        width //= 2
    return width


def _nothing(n_features: int) -> Example:
    return Example(np.empty(0, INDEX), np.empty(0), n_features)


def _check_size(learner: Learner, n_features: int, n_labels: int) -> None:
    """Raise ValueError for a learner, of a form that its size decided, with too many weights."""
    weights = learner._n_weights(n_features, n_labels)
    if weights > MOST_WEIGHTS:
        raise ValueError(
            f"{n_features:,} features and {n_labels:,} labels make {weights:,} numbers to hold; "
            f"a model has at most {MOST_WEIGHTS:,}: make one with a smaller n_features, or with "
            "all labels from the start"
        )
