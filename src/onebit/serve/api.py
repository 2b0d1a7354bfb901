"""What requests and answers look like: the types of the HTTP interface."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, defstruct
from msgspec.structs import fields

from onebit.serve.rows import (
    FeedbackBody,
    Id,
    Kind,
    Label,
    Labels,
    LearnerSpec,
    ModelSpec,
    Name,
    Share,
)

LATEST_TIME = 1e11
"""No time is later, in seconds since 1970."""


class RefusedError(Exception):
    """A request that cannot be met, with the HTTP status that says why."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class Problem(Struct, frozen=True):
    """Why a request was refused."""

    error: str
    request_id: str


class DecisionRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What to decide about."""

    record: str | dict[str, Any] | list[Any]
    """A text, a JSON object, or a list of numbers."""
    id: Id | None = None
    """Identifies the decision; asking again with the same id returns the same decision."""
    among: Labels | None = None
    """The labels on offer; by default all that are not retired."""
    chosen: Label | None = None
    """The choice of the product, if the model is its apprentice."""
    chosen_probability: Annotated[float, Meta(gt=0, le=1)] | None = None
    """The probability with which the product chose it, if it has one."""
    explore: bool = True
    """Whether another label than the best guess may be chosen."""


class DecisionResult(Struct, frozen=True):
    """A decision."""

    id: str
    label: Label
    probability: float
    """The probability with which this label was chosen."""
    confidence: float | None
    """The learner's own estimate of the probability that the label is right."""


class ExplanationRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Two labels to compare for a record."""

    record: str | dict[str, Any] | list[Any]
    label: Label | None = None
    """By default the best guess."""
    against: Label | None = None
    """By default the best guess among the others."""
    among: Labels | None = None
    """The labels on offer; by default all that are not retired."""


class ReasonView(Struct, frozen=True):
    """What a feature adds to the difference of two scores."""

    text: str
    amount: float
    """Positive if it speaks for the label, negative if for the other one."""


class ExplanationView(Struct, frozen=True):
    """Why one label scores higher than another one, by what the model knows now."""

    label: Label
    against: Label
    probabilities: tuple[float, float] | None
    """Probabilities that each of them is right, if the learner is a probability model."""
    difference: float
    """Difference of their scores: the sum of all amounts."""
    reasons: list[ReasonView]
    """The largest amounts first; the last one may be the sum of those that are left out."""


class Feedback(Struct, frozen=True, forbid_unknown_fields=True):
    """Feedback for a decision: `correct`, `truth`, or `reward`."""

    id: Id
    correct: bool | UnsetType = UNSET
    """Whether the label was right."""
    truth: Label | UnsetType | None = UNSET
    """The right label; null if it is none of these."""
    reward: Share | UnsetType = UNSET
    """A fraction of right: 0.4 is the mean over a bit that is true with this probability."""

    @property
    def body(self) -> FeedbackBody:
        """The feedback as rows have it: a reward of 0 or 1 is a bit."""
        if self.reward is UNSET or 0.0 < self.reward < 1.0:
            return FeedbackBody(self.correct, self.truth, self.reward)
        return FeedbackBody(self.reward == 1.0, self.truth)


class Revision(Feedback, frozen=True, forbid_unknown_fields=True):
    """Other feedback for a decision, in place of earlier feedback."""

    withdrawn: bool = False
    """Whether the earlier feedback is withdrawn; then there is no other."""


Status = Literal["accepted", "repeated", "unknown", "expired", "contradiction", "invalid"]


class FeedbackResult(Struct, frozen=True, omit_defaults=True):
    """What happened to feedback."""

    id: str
    status: Status
    """accepted: it is in the log; repeated: it already was, and nothing more is learned."""
    message: str | None = None


class Erasure(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which decisions to erase, with their feedback: `ids`, `field` and `value`, or `before`."""

    ids: Annotated[list[Id], Meta(min_length=1, max_length=1000)] | UnsetType = UNSET
    field: (
        Annotated[str, Meta(min_length=1)] | Annotated[list[str], Meta(min_length=1)] | UnsetType
    ) = UNSET
    """A field of the record, such as "user"; a list of names for a field inside of another one."""
    value: str | int | float | bool | UnsetType | None = UNSET
    """What the field has, as itself, as a text, or as one of a list."""
    before: Annotated[float, Meta(ge=0, le=LATEST_TIME)] | UnsetType = UNSET
    """Decisions that were made before this time, in seconds since 1970."""


class ErasureResult(Struct, frozen=True):
    """What was erased."""

    decisions: int
    rows: int
    """Rows of the log: decisions, their feedback and its revisions."""


class NewModel(ModelSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model to be made."""

    name: Name


class NewShadow(LearnerSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A shadow to be added."""

    name: Name


class Interval(Struct, frozen=True):
    """An estimate, with an interval that holds at all times with probability 0.95."""

    estimate: float
    low: float
    high: float


class LabelView(Struct, frozen=True):
    """A label, and how well it does."""

    label: Label
    retired: bool
    chosen: int
    right: int
    wrong: int
    description: str | None
    """What it means, as text; long ones are cut."""


class ShadowView(Struct, frozen=True):
    """A learner that learns from the same log, and the accuracy it would have had."""

    name: str
    learner: str
    parameters: dict[str, Any]
    since: int
    """The row that added it."""
    accuracy: Interval | None
    live: Interval | None
    """The accuracy of the learner that decides, since the same row."""
    difference: Interval | None
    """By how much it would have been more accurate, from the same decisions."""


class PointView(Struct, frozen=True):
    """Sums up to a time, and the accuracy of all feedback up to then."""

    at: float
    decisions: int
    explored: int
    right: int
    wrong: int
    accuracy: Interval | None


class ModelView(Struct, frozen=True):
    """A model."""

    name: str
    learner: str
    parameters: dict[str, Any]
    input: str
    n_features: int
    rows: int
    """Rows of its log that it has applied."""
    behind: int
    """Rows of its log that it has not applied yet."""
    is_leader: bool
    """Whether this process makes its snapshots and expires its decisions."""
    frozen: bool
    expiry_seconds: float | None
    expired_counts_as: str
    max_exploration: float | None
    max_new_share: float | None
    """Of any 1,000 decisions, at most this share explores; null is no limit."""
    decisions: int
    explored: int
    right: int
    wrong: int
    expired: int
    awaited: int
    """Decisions whose feedback may still come."""
    accuracy: Interval | None
    labels: list[LabelView]


ListedModel = defstruct(
    "ListedModel",
    [
        ("name", str),
        ("is_loaded", bool),
        *(
            (one.name, one.type | UnsetType, UNSET) for one in fields(ModelView)[1:]
        ),  # after the name
    ],
    namespace={"__doc__": "A model in a list; before it is read from the log, only its name."},
    module=__name__,
    frozen=True,
    omit_defaults=True,
)


class ModelDetail(ModelView, frozen=True):
    """A model, with how it did over time."""

    curve: list[PointView]
    changes: list[float]
    """Times at which its accuracy fell."""
    shadows: list[ShadowView]


class DecisionView(Struct, frozen=True, omit_defaults=True):
    """A decision of the log, and its feedback."""

    id: str
    at: float
    record: Any
    label: Label
    probability: float
    explored: bool
    correct: bool | None = None
    truth: Label | None = None
    reward: float | None = None
    expired: bool = False


class LogRow(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A row of a log, as it is exported: a line of JSON."""

    n: int
    kind: Kind
    at: float
    body: Raw
    """The content of the row: a JSON object."""
    id: Id | None = None
    code: Annotated[str, Meta(max_length=200)] | None = None
    """The code that made this row and those up to the next row that names one: its version and a
    fingerprint. Empty if it is not known; without any, of an export by an earlier version."""
