"""The rows of a log: the content of each kind of row, and how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from onebit.core.decision import MAX_ID_LENGTH

LONGEST_LABEL = 200

Id = Annotated[
    str,
    Meta(
        max_length=MAX_ID_LENGTH,
        pattern=r"\A[^\x00]+\Z",
        description="What a decision is known by.",
    ),
]
Label = (
    Annotated[str, Meta(max_length=LONGEST_LABEL, pattern=r"\A[^\x00]+\Z")]
    | Annotated[int, Meta(ge=-(2**53), le=2**53)]
)
Labels = Annotated[list[Label], Meta(min_length=1)]
Description = str | dict[str, Any] | list[Any]
Name = Annotated[
    str,
    Meta(
        pattern=r"\A[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z",
        description="Letters, digits, `_`, `.` and `-`, at most 64, a letter or digit first.",
    ),
]

Kind = Literal[
    "model",
    "decision",
    "feedback",
    "activation",
    "labels",
    "settings",
    "shadow",
    "revision",
    "erasure",
    "erased",
]

OF_DECISIONS = ("decision", "feedback", "activation", "revision")
"""Kinds of rows that have the id of a decision."""

AMENDING = ("revision", "erasure")
"""Kinds of rows that change what earlier rows say; see `amending`."""


class Row(NamedTuple):
    """A row of a model's log.

    Attributes
    ----------
    model : int
        The key of the model.
    n : int
        Its number in the log of the model, from 1.
    kind : str
    id : str or None
        Of the decision that it is, or is about.
    at : float
        When it was written, in seconds since 1970.
    body : str
        Its content, as JSON.
    code : int or None
        The key of the code that made it; None if that was not written yet (see `ServiceLog.codes`).
    """

    model: int
    n: int
    kind: Kind
    id: str | None
    at: float
    body: str
    code: int | None = None


class DescribedLabel(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A label, and what it means."""

    name: Label
    description: Description | None = None
    """What the label means, in the form of a record; null without a description."""


class ApprenticeSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Who decides, the product or the model that learns beside it; omitted ones stay as they are.

    At first, the product decides alone, until someone says otherwise.
    """

    decides: Literal["product", "model"] | UnsetType = UNSET
    share: Annotated[float, Meta(ge=0, le=0.5)] | UnsetType = UNSET
    """Share of the decisions that are left to the one that does not decide."""
    confidence: Annotated[float, Meta(ge=0.5, lt=1)] | UnsetType | None = UNSET
    """Probability of being better with which the other one takes over; null: it never does."""


Share = Annotated[float, Meta(ge=0, le=1)]


class ModelSettings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The settings of a model that can change while it runs; omitted ones stay as they are."""

    frozen: bool | UnsetType = UNSET
    """Whether feedback is written, but not learned from."""
    expiry_seconds: Annotated[float, Meta(gt=0, le=1e9)] | UnsetType | None = UNSET
    """Seconds after which feedback is no longer awaited; null means never."""
    expired_counts_as: Literal["nothing", "wrong"] | UnsetType = UNSET
    """What an expired decision counts as."""
    apprentice: ApprenticeSettings | UnsetType | None = UNSET
    """Makes the model the apprentice of a product that already decides; null ends that."""
    max_exploration: Share | UnsetType | None = UNSET
    """Of any 1,000 decisions, at most this share explores; null is no limit."""
    max_new_share: Share | UnsetType | None = UNSET
    """Of any 1,000 decisions, at most this share is a label that was added and is new; null is no
    limit."""


class LearnerSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A learner and its parameters."""

    learner: Annotated[str, Meta(max_length=64)] = "OneBitClassifier"
    """One of onebit's learners that need one bit and whose round costs O(nnz K)."""
    parameters: dict[str, bool | int | float | str | None] = {}
    """Parameters of the learner's class; omitted ones have their defaults."""


class ModelSpec(LearnerSpec, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model is made from: the first row of its log."""

    labels: Annotated[list[Label | DescribedLabel], Meta(min_length=2)]
    """Names, or objects with a name and a description."""
    input: Literal["records", "numbers"] = "records"
    """What decisions are about: texts and JSON objects, or lists of numbers."""
    n_features: Annotated[int, Meta(ge=1, le=2**24)] | None = None
    """The length of the lists of numbers; for records, the columns they are hashed to.

    By default 65,536 columns for records, and fewer for more than 256 labels: 16,384 for 1,000.
    """
    seed: Annotated[int, Meta(ge=0, lt=2**53)] | None = None
    """Seed of all random draws; by default a random one."""
    expiry_seconds: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    expired_counts_as: Literal["nothing", "wrong"] = "nothing"
    apprentice: ApprenticeSettings | UnsetType = UNSET
    """Makes the model the apprentice of a product that already decides."""
    max_exploration: Share | UnsetType = UNSET
    """Of any 1,000 decisions, at most this share explores."""
    max_new_share: Share | UnsetType = UNSET
    """Of any 1,000 decisions, at most this share is a label that was added and is new."""


class DecisionBody(Struct, frozen=True, omit_defaults=True):
    """A decision; seen: the number of rows that the model had applied when it decided."""

    record: Any
    label: Label
    probability: float
    seen: int
    confidence: float | None = None
    among: list[Label] | None = None
    explored: bool = False
    chosen: Label | None = None
    """The choice of the product, for which the model is an apprentice."""
    chosen_probability: float | None = None
    """The probability with which the product chose it, if it has one."""
    product_share: float | None = None
    """The probability with which the choice of the product was taken."""
    model_probability: float | None = None
    """The probability that the model gave to the label."""
    explore: bool = True
    """Whether another label than the best guess could be chosen."""
    exploration_cap: float | None = None
    """The largest probability that such labels could have, by the limit of the model."""
    new_cap: float | None = None
    """The largest probability that new labels could have, by the limit of the model."""
    is_new: bool = False
    """Whether the label was new, if that is limited."""
    deferred: bool = False
    """Whether its label may never be shown: unless activated, it expires as nothing."""


class FeedbackBody(Struct, frozen=True, omit_defaults=True):
    """Feedback for a decision, or what it counts as once it expired or was withdrawn."""

    correct: bool | UnsetType = UNSET
    truth: Label | UnsetType | None = UNSET
    """The right label; null means none of these."""
    reward: Share | UnsetType = UNSET
    """A fraction of right, between 0 and 1."""
    expired: Literal["nothing", "wrong"] | UnsetType = UNSET
    withdrawn: bool = False


class RevisionBody(FeedbackBody, frozen=True, kw_only=True, omit_defaults=True):
    """Other feedback in place of the feedback in an earlier row, as if it had been given there."""

    since: int
    """The row of the feedback."""


class ErasureBody(Struct, frozen=True):
    """Records that rows were erased: since then, the remaining rows determine the model."""

    since: int
    """The first erased row."""


class ErasedBody(Struct, frozen=True):
    """What is left of an erased row: its number and its time."""


class ActivationBody(Struct, frozen=True):
    """A decision that was deferred, and is shown: it has no content."""


class LabelsBody(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Labels that come and go, and what labels mean."""

    add: list[Label | DescribedLabel] = []
    retire: list[Label] = []
    describe: list[DescribedLabel] = []
    """Labels that get a description, or another one."""


class ShadowBody(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A shadow that is added, removed, or becomes the learner that decides."""

    action: Literal["add", "remove", "promote"]
    name: Name
    spec: LearnerSpec | None = None


BODIES: dict[str, Any] = {
    "model": ModelSpec,
    "decision": DecisionBody,
    "feedback": FeedbackBody,
    "activation": ActivationBody,
    "labels": LabelsBody,
    "settings": ModelSettings,
    "shadow": ShadowBody,
    "revision": RevisionBody,
    "erasure": ErasureBody,
    "erased": ErasedBody,
}

_DECODERS = {kind: msgspec.json.Decoder(body) for kind, body in BODIES.items()}
_encode = msgspec.json.Encoder().encode


def names_of(labels: Sequence[Label | DescribedLabel]) -> list[Label]:
    """Return the names of labels."""
    return [one.name if isinstance(one, DescribedLabel) else one for one in labels]


def descriptions_of(labels: Sequence[Label | DescribedLabel]) -> dict[Label, Description]:
    """Return the descriptions of labels, by name, where there are any."""
    return {
        one.name: one.description
        for one in labels
        if isinstance(one, DescribedLabel) and one.description is not None
    }


def body_of(row: Row) -> Any:
    """Return the content of a row."""
    return _DECODERS[row.kind].decode(row.body)


def text_of(body: Struct) -> str:
    """Return the content of a row, as it is written."""
    return _encode(body).decode()
