"""Rank and reward by event id: requests as clients of the retired Personalizer service send them.

An event is a decision, an action is a label, and the context is the record. An adapter: it has no
state of its own, and everything is written and learned as for decisions and feedback.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from onebit.core.decision import new_id
from onebit.serve import decisions, feedback
from onebit.serve.api import DecisionRequest, Feedback, RefusedError
from onebit.serve.apprentice import probability_of
from onebit.serve.live import LiveModel
from onebit.serve.requests import Reply, Request
from onebit.serve.rows import LONGEST_LABEL, DescribedLabel, Id, Label, LabelsBody

if TYPE_CHECKING:
    from onebit.serve.app import App

ActionId = Annotated[str, Meta(max_length=LONGEST_LABEL, pattern=r"\A[^\x00]+\Z")]
Features = list[dict[str, Any]]

_ATTEMPTS = 5
"""Attempts to add the actions of a request."""

_encode = msgspec.json.Encoder().encode


class RankableAction(Struct, frozen=True):
    """An action that may be chosen."""

    id: ActionId
    features: Features | None = None
    """What the action is; it becomes the description of its label when that is added."""


class RankRequest(Struct, frozen=True, rename="camel"):
    """Actions to choose from, and the context."""

    actions: Annotated[list[RankableAction], Meta(min_length=1)]
    context_features: Features | None = None
    excluded_actions: list[str] | None = None
    """Ids of actions that are not chosen."""
    event_id: Id | None = None
    """Identifies the decision; by default a random one."""
    defer_activation: bool | None = None
    """Whether the action may never be shown: it then counts as nothing without a reward."""


class RankedAction(Struct, frozen=True):
    """An action, and the probability with which it was chosen."""

    id: str
    probability: float


class RankResponse(Struct, frozen=True, rename="camel"):
    """The chosen action, and all actions: the chosen one first, then by probability."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class RewardRequest(Struct, frozen=True):
    """The reward of an event."""

    value: Annotated[float, Meta(ge=0, le=1)]


async def rank(app: App, request: Request) -> Reply:
    """Choose one of the actions of a request; new actions become labels of the model."""
    body: RankRequest = request.body
    live = await app.service.find(request.parameters["model"])
    ids = [action.id for action in body.actions]
    if len(set(ids)) < len(ids):
        raise RefusedError(422, "two actions have the same id")
    await _add_actions(app, request, live, body.actions)
    model = live.model
    excluded = {*(body.excluded_actions or ()), *model.learner.retired}
    offered = [name for name in ids if name not in excluded]
    if not offered:
        raise RefusedError(422, "all actions are excluded, or retired")
    record = _merged(body.context_features)
    chosen = None if model.meta.apprentice is None else offered[0]
    question = DecisionRequest(record, body.event_id or new_id(), [*offered], chosen)
    p = _probabilities(live, question, offered)  # in the state that decides next
    (made,) = await decisions.decide(
        app.service, live, [question], deferred=bool(body.defer_activation)
    )
    label = str(made.label)
    if made.probability != p[label]:  # it was decided before, in another state
        rest = sum(p.values()) - p[label]
        scale = (1.0 - made.probability) / rest if rest > 0.0 else 0.0
        p = {name: scale * share for name, share in p.items()} | {label: made.probability}
    ranking = _ranked(ids, p, label)
    return Reply(_encode(RankResponse(ranking, made.id, label)), 201)


async def reward(app: App, request: Request) -> Reply:
    """Accept the reward of an event; the first one counts."""
    live = await app.service.find(request.parameters["model"])
    event, body = request.parameters["event"], request.body
    given = [Feedback(event, reward=body.value)]
    (result,) = await feedback.give_feedback(app.service, live, given)
    if result.status in ("unknown", "invalid"):
        raise RefusedError(404, f"there is no event {event!r:.80}")
    return Reply(b"", 204)


async def activate(app: App, request: Request) -> Reply:
    """Expect a reward for an event whose activation was deferred."""
    live = await app.service.find(request.parameters["model"])
    event = request.parameters["event"]
    if not await feedback.activate(app.service, live, event):
        raise RefusedError(404, f"there is no event {event!r:.80}")
    return Reply(b"", 204)


async def _add_actions(
    app: App, request: Request, live: LiveModel, actions: Sequence[RankableAction]
) -> None:
    """Add the actions that are not labels yet; other requests may do so at the same time."""
    for _ in range(_ATTEMPTS):
        missing = _missing(live, actions)
        if not missing:
            return
        if request.grant is not None:
            request.grant.check_scope("admin")
        is_described = live.model.learner.takes_descriptions
        labels: list[Label | DescribedLabel] = [
            DescribedLabel(one.id, _merged(one.features) or None) if is_described else one.id
            for one in missing
        ]
        try:
            await app.service.change_labels(live, LabelsBody(add=labels))
        except RefusedError:
            if len(_missing(live, actions)) == len(missing):
                raise
        if live.head > live.model.n:  # other processes have written, too
            await app.service.follower.catch_up(live)
    raise RefusedError(503, "other requests add actions at the same time; try again")


def _missing(live: LiveModel, actions: Iterable[RankableAction]) -> list[RankableAction]:
    known = set(live.model.learner.labels)
    return [one for one in actions if one.id not in known]


def _merged(features: Features | None) -> dict[str, Any]:
    """Return features as one record; values of the same name become a list."""
    values: dict[str, list[Any]] = {}
    for one in features or ():
        for name, value in one.items():
            values.setdefault(name, []).append(value)
    return {name: found[0] if len(found) == 1 else _flat(found) for name, found in values.items()}


def _flat(values: list[Any]) -> list[Any]:
    """Return values as one list, with the items of those that are lists."""
    items: list[Any] = []
    for value in values:
        items += value if isinstance(value, list) else [value]
    return items


def _probabilities(
    live: LiveModel, question: DecisionRequest, offered: list[str]
) -> dict[str, float]:
    """Return the probability of each action on offer."""
    learner, apprentice = live.model.learner, live.model.meta.apprentice
    try:
        policy = learner.policy(
            learner.example(question.record),
            [*offered],
            cap=live.model.exploration_cap(),
            new_cap=live.model.new_cap(),
        )
    except (ValueError, TypeError) as error:
        raise RefusedError(422, str(error)) from None
    p = {name: float(policy[learner.position_of(name)]) for name in offered}
    if apprentice is None:
        return p
    share = apprentice.product_share
    return {
        name: 0.0
        if share == 1.0 and name != question.chosen
        else probability_of(name == question.chosen, one, None, share)
        for name, one in p.items()
    }


def _ranked(ids: list[str], p: dict[str, float], chosen: str) -> list[RankedAction]:
    """Return all actions; those that were not on offer keep their places."""
    order = iter(sorted(p, key=lambda name: (name != chosen, -p[name])))
    names = [next(order) if name in p else name for name in ids]
    return [RankedAction(name, p.get(name, 0.0)) for name in names]
